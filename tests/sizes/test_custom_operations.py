"""Operations of the program's own leave sizes open: two entries for sizes that change."""

import pytest

torch = pytest.importorskip("torch")
import torch._dynamo  # noqa: E402

import stator  # noqa: E402


@pytest.fixture(scope="module")
def ops():
    """Operators of a library that goes when the tests are done."""
    with torch.library._scoped_library("stator_tests", "FRAGMENT") as library:

        def define(schema, kernel, fake, **more):
            library.define(schema, **more)
            name = schema.split("(")[0]
            library.impl(name, kernel, "CompositeExplicitAutograd")
            torch.library.register_fake(f"stator_tests::{name}", fake, lib=library)

        def long(x):
            if x.shape[0] > 5:
                raise ValueError("too long")
            return x + 1

        def added(x):
            x.add_(1)

        def chosen(x):
            size = torch.library.get_ctx().new_dynamic_size()
            return x.new_empty(size)

        define("sine(Tensor x) -> Tensor", torch.sin, torch.empty_like)
        define("long(Tensor x) -> Tensor", long, torch.empty_like)
        define("raise_(Tensor(a!) x) -> ()", added, lambda x: None)
        define("cut(Tensor x, SymInt n, float f) -> Tensor", lambda x, n, f: x[:n] * f,
               lambda x, n, f: x.new_empty(n, *x.shape[1:]))  # fmt: skip
        define("both(Tensor x) -> (Tensor, Tensor)", lambda x: (x * 2, x.sum(0)),
               lambda x: (torch.empty_like(x), x.new_empty(x.shape[1:])))  # fmt: skip
        define("joined(Tensor[] xs) -> Tensor", lambda xs: torch.cat(xs),
               lambda xs: xs[0].new_empty(sum(x.shape[0] for x in xs), *xs[0].shape[1:]))  # fmt: skip
        define("positive(Tensor x) -> Tensor", lambda x: x[x > 0], chosen)
        yield torch.ops.stator_tests


def twice(ops, x):
    return ops.sine(x) * 2, ops.sine(x + 1)


def fails(ops, x):
    return ops.long(x) * 2


def writes(ops, x):
    y = x.clone()
    ops.raise_(y)
    ops.raise_(x)
    return y + x


def of_numbers(ops, x):
    return ops.cut(x, x.shape[0] - 1, 2.5).sum(0)


def two_results(ops, x):
    a, b = ops.both(x)
    return a + b


def of_a_list(ops, x):
    return ops.joined([x, x + 1])


def of_unknown_size(ops, x):
    found = ops.positive(x.view(-1))
    return found + 1, found.sum(), found.shape[0]


PROGRAMS = [twice, fails, writes, of_numbers, two_results, of_a_list, of_unknown_size]


def outcome(function, ops, x):
    try:
        result = function(ops, x)
    except ValueError as error:
        result = str(error)
    return result, x


def same(a, b):
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_two_entries_and_what_plain_python_gives(program, backend, ops):
    compiled = stator.compile(program, backend=backend)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        for n in (3, 4, 5, 6, 7, 4):
            x = torch.arange(4.0 * n).view(n, 4) - n
            assert same(outcome(compiled, ops, x.clone()), outcome(program, ops, x)), n
    assert len(compiled.compiler.entries()) <= 2 + (program is of_numbers)
