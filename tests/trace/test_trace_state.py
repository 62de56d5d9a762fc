"""What a trace must leave alone: nothing is written when it is dropped, when the backend raises or
when the graph raises; entries, limits, death and threads."""

import copy
import gc
import pickle
import subprocess
import sys
import threading
import time
import types
import warnings
import weakref

import pytest
from worlds import Freezer, escaped, find_inner, keep_empty, module_of

import stator
from stator import _engine


@pytest.fixture(autouse=True)
def no_hook():
    yield
    assert not _engine.hook_installed()


def _cannot_be_traced():
    print(end="")
    return 2


# --- dropped traces -----------------------------------------------------------------------------


class _State:
    __slots__ = ("slot", "__dict__")


def _world():
    log = []
    o = _State()
    o.slot, o.attr = 1, [1]
    return {"log": log, "o": o, "d": {"k": 1}, "s": {1}, "xs": [3, 1, 2]}


def _writes(log, o, d, s, xs, last):
    log.append("in")
    o.slot, o.attr, o.new = 2, [2], 3
    d["k"] = d.pop("k") + 1
    d["new"] = o
    s.add(5)
    xs.sort()
    last()
    log.append("out")
    return len(xs)


def test_what_a_trace_breaks_for_sees_every_write_exactly_once():
    seen = []

    def last():
        seen.append(Freezer().snapshot(world))
        return eval("1")

    f = keep_empty(_writes)
    for _ in range(3):
        world = _world()
        expected = _world()
        assert f(**world, last=last) == _writes(**expected, last=lambda: None)
        assert Freezer().snapshot(world) == Freezer().snapshot(expected)
    assert len(seen) == 3 and seen[0] == seen[1] == seen[2]
    assert f.metrics["breaks"] and not f.metrics["drops"]


def test_fullgraph_error_wrote_nothing():
    f = stator.compile(_writes, backend="eager", fullgraph=True, _keep_empty=True)
    world = _world()
    before = Freezer().snapshot(world)
    with pytest.raises(stator.Unsupported):
        f(**world, last=_cannot_be_traced)
    assert Freezer().snapshot(world) == before


def test_fullgraph_error_says_why_where_and_what_to_do():
    def inner():
        return print(end="")  # the line

    def outer():
        return inner()

    f = stator.compile(outer, backend="eager", fullgraph=True, _keep_empty=True)
    with pytest.raises(stator.Unsupported) as caught:
        f()
    text = str(caught.value)
    assert f"{__file__}:{inner.__code__.co_firstlineno + 1}" in text
    assert "inner" in text and "outer" in text and "hint: " in text and "print" in text


def test_break_reason_names_the_users_line():
    def f():
        x = 1
        return print(end=""), x

    compiled = keep_empty(f)
    assert compiled() == (None, 1)
    [reason] = compiled.metrics["breaks"]
    assert f"{__file__}:{f.__code__.co_firstlineno + 2}" in reason


def test_suspended_generator_survives_a_break_without_running_its_finally():
    log = []

    class Log:
        def write(self, text):
            log.append("print")

    log_file = Log()

    def g():
        try:
            log.append("start")
            yield 1
        finally:
            log.append("finally")

    def f():
        it = g()
        next(it)
        print("", file=log_file, end="x")
        return it

    compiled = keep_empty(f)
    for _ in range(3):
        log.clear()
        it = compiled()
        assert log[0] == "start" and set(log[1:]) == {"print"}
        it.close()
        assert log[-1] == "finally"
    assert compiled.metrics["breaks"] and not compiled.metrics["drops"]


def test_suspended_generators_in_native_code_are_dropped_quietly():
    log = []

    def g():
        try:
            yield 1
            eval("1")
            yield 2
        finally:
            log.append("finally")

    def f():
        return list(zip(g(), g())), sum(g())

    compiled = keep_empty(f)
    for _ in range(2):
        log.clear()
        assert compiled() == ([(1, 1), (2, 2)], 3)
        assert log == ["finally"] * 3


def test_handlers_do_not_run_when_a_trace_is_dropped():
    log = []

    class Context:
        def __enter__(self):
            log.append("enter")

        def __exit__(self, *exc):
            log.append(("exit", exc[0]))

    def f():
        with Context():
            try:
                return eval("5")
            except BaseException:
                log.append("except")
            finally:
                log.append("finally")

    compiled = keep_empty(f)
    for _ in range(2):
        log.clear()
        assert compiled() == 5
        assert log == ["enter", "finally", ("exit", None)]


def test_exception_of_the_function_comes_out_once_with_its_own_frames():
    log = []

    def g(x):
        log.append(x)
        raise ValueError(x)

    def f(x):
        return g(x)

    compiled = keep_empty(f)
    for _ in range(3):
        log.clear()
        with pytest.raises(ValueError) as caught:
            compiled([1])
        assert log == [[1]]
        names = [entry.name for entry in caught.traceback]
        assert names[-2:] == ["f", "g"]
        assert caught.value.__context__ is None


class _Loud(Exception):
    def __str__(self):
        raise AssertionError("nobody asked")


@pytest.mark.parametrize(
    "error,shown",
    [
        (ValueError("so wrong"), "ValueError: so wrong"),
        (KeyError, "KeyError"),
        (OSError(2, "no"), "FileNotFoundError"),
        (_Loud([1]), "_Loud"),
    ],
)
def test_fullgraph_names_the_exception_that_leaves(error, shown):
    def f():
        raise error if isinstance(error, type) else type(error)(*error.args)

    with pytest.raises(stator.Unsupported, match=f"leaves the compiled function: {shown} "):
        stator.compile(f, backend="eager", fullgraph=True)()


def test_keyboard_interrupt_in_a_trace_comes_out():
    def f(kind):
        raise kind

    compiled = keep_empty(f)
    for kind in (KeyboardInterrupt, SystemExit, GeneratorExit):
        with pytest.raises(kind):
            compiled(kind)


def test_nothing_of_a_trace_is_reachable_afterwards():
    class O:
        pass

    def f(o, xs, d):
        o.x = xs
        xs.append(o)
        d["f"] = lambda: o
        return sorted(d), [x for x in xs], map(str, d), iter(xs), o.__dict__, d.items()

    o, xs, d = O(), [1], {"a": 1}
    result = keep_empty(f)(o, xs, d)
    assert not find_inner([result, o, xs, d])
    assert not escaped()


def test_collection_is_on_again_after_a_trace():
    def f(x):
        return [x]

    assert gc.isenabled()
    keep_empty(f)(1)
    assert gc.isenabled()
    keep_empty(_cannot_be_traced)()
    assert gc.isenabled()
    gc.disable()
    try:
        keep_empty(f)(1)
        assert not gc.isenabled()
    finally:
        gc.enable()


# --- entries and limits -------------------------------------------------------------------------


def test_limit_gives_up_without_a_word_where_no_graph_is_lost():
    def f(x):
        return x + 1

    compiled = stator.compile(f, backend="eager", dynamic=False, _keep_empty=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(30):
            assert compiled(n) == n + 1
    assert compiled.metrics["entries"] == 8
    assert not [w for w in caught if "stator" in str(w.message)]
    assert len(compiled.metrics["recompiles"]) >= 7
    assert "L['x']" in compiled.metrics["recompiles"][0]
    traces, hits = compiled.metrics["traces"], compiled.metrics["hits"]
    assert traces == 8
    assert compiled(3) == 4, "entries that were made before still serve"
    assert compiled.metrics["hits"] == hits + 1


def test_recompile_reason_has_old_and_new_value():
    def f(cfg):
        return cfg["d"][0] + 1

    compiled = keep_empty(f)
    compiled({"d": [111]})
    compiled({"d": [222]})
    [reason] = compiled.metrics["recompiles"]
    assert "111" in reason and "222" in reason and "L['cfg']['d'][0]" in reason


def test_recompile_reason_runs_nobodys_code():
    log = []

    class C:
        def __repr__(self):
            log.append(1)
            raise ValueError

        __str__ = __eq__ = __hash__ = __repr__

    def f(c, d):
        return c is None, d["k"] is None

    compiled = keep_empty(f)
    for args in ((None, {"k": 1}), (C(), {"k": C()}), (1, {"k": None}), (C(), {"k": C()})):
        compiled(*args)
    assert not log


def test_dropped_traces_give_up_as_well():
    compiled = keep_empty(_cannot_be_traced)
    for _ in range(50):
        assert compiled() == 2
    assert compiled.metrics["traces"] <= 10


def test_empty_trace_is_left_to_cpython_unless_kept():
    ran = []

    def f(xs):
        xs.append(1)
        return len(xs)

    compiled = stator.compile(f, backend="eager")
    code = f.__code__

    def watch(frame, event, arg):
        if frame.f_code is code:
            ran.append(event)

    xs = []
    compiled(xs)
    compiled([])
    sys.setprofile(watch)
    try:
        compiled([])
    finally:
        sys.setprofile(None)
    assert ran and xs == [1]


def test_most_recent_entry_is_tried_first_and_all_stay():
    def f(x):
        return x * 2

    compiled = keep_empty(f)
    for x in ("a", 1, 2.5):
        compiled(x)
    for x in (2.5, "a", 1, "a"):
        assert compiled(x) == x * 2
    assert compiled.metrics["entries"] == 3 and compiled.metrics["hits"] == 4


def test_reset_forgets_entries_and_limits():
    def f(x):
        return x + 1

    compiled = keep_empty(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in range(12):
            compiled(n)
    stator.reset()
    assert compiled.metrics["entries"] == 0
    before = compiled.metrics["traces"]
    assert compiled(100) == 101 and compiled(100) == 101
    assert compiled.metrics["traces"] == before + 1
    assert compiled.metrics["entries"] == 1


def test_reset_during_a_call_is_safe():
    def backend(graph, examples):
        stator.reset()
        return lambda *args: stator.reset() or [a for a in args]

    torch = pytest.importorskip("torch")
    f = stator.compile(lambda x: x + 1, backend=backend)
    for _ in range(3):
        f(torch.ones(2))


def test_entry_dies_with_what_it_holds_weakly():
    class O:
        pass

    def f(o, x):
        return o is x

    compiled = keep_empty(f)
    o = O()
    assert compiled(o, o)
    marker = O()

    def g(x):
        return x is marker

    other = keep_empty(g)
    assert other(marker)
    ref = weakref.ref(o)
    del o
    assert ref() is None, "an entry may not keep its arguments alive"
    ref = weakref.ref(marker)
    del marker
    assert ref() is None


def test_entries_of_classes_that_are_gone_are_gone():
    def f(x):
        return x.v

    compiled = keep_empty(f)
    refs = []
    for n in range(40):
        cls = type("Gone", (), {"v": 1})
        assert compiled(cls()) == 1
        refs.append(weakref.ref(cls))
        del cls
        gc.collect()
    assert all(ref() is None for ref in refs)
    assert compiled.metrics["entries"] <= 1
    assert compiled.metrics["traces"] == 40, "dead entries do not count towards the limit"


def test_compiled_function_and_its_entries_die_together():
    class O:
        pass

    def make():
        local = O()

        def f(x):
            return x, local

        compiled = keep_empty(f)
        compiled(O())
        compiled(1)
        return weakref.ref(local), weakref.ref(f), weakref.ref(compiled)

    refs = make()
    gc.collect()
    assert [ref() for ref in refs] == [None] * 3


def test_arguments_are_let_go_after_a_warm_call():
    class O:
        pass

    def f(x, d):
        d["x"] = [x]
        del d["x"]
        return None

    compiled = keep_empty(f)
    for _ in range(4):
        o = O()
        ref = weakref.ref(o)
        compiled(o, {})
        del o
        assert ref() is None


def test_compiled_callable_looks_like_the_function():
    def f(x: int, y=2, *, z=3):
        """Doc."""

    f.tag = 1
    compiled = keep_empty(f)
    import inspect

    assert compiled.__name__ == "f" and compiled.__doc__ == "Doc." and compiled.tag == 1
    assert compiled.__wrapped__ is f and inspect.signature(compiled) == inspect.signature(f)
    assert callable(compiled)
    assert inspect.isfunction(compiled) and not inspect.isbuiltin(compiled)


@keep_empty
def compiled_by_name(x):
    return x


def test_compiled_functions_are_copied_as_functions():
    class Holder:
        pass

    holder = Holder()
    holder.f, holder.name = compiled_by_name, ["name"]
    other = copy.deepcopy(holder)
    assert other.f is compiled_by_name and other.name is not holder.name
    assert copy.copy(compiled_by_name) is compiled_by_name
    assert pickle.loads(pickle.dumps(compiled_by_name)) is compiled_by_name
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(keep_empty(lambda x: x))


def test_class_of_a_compiled_function_in_a_trace():
    def f(g, h):
        kinds = types.FunctionType, types.MethodType
        return [(isinstance(o, kinds), isinstance(o, int), o.__class__) for o in (g, h)]

    args = compiled_by_name, _State().__init__
    compiled = keep_empty(f)
    assert compiled(*args) == f(*args)
    assert compiled(*args) == f(*args)
    assert f(*args)[0] == (True, False, types.FunctionType)


def test_compiled_function_as_a_method():
    class C:
        def __init__(self):
            self.n = 0

        @keep_empty
        def bump(self, by=1):
            self.n += by
            return self.n

    c = C()
    assert [c.bump(), c.bump(2), C.bump(c, by=3)] == [1, 3, 6]
    assert isinstance(c.bump, types.MethodType)


def test_disabled_compile_gives_the_function_back():
    def f():
        pass

    assert stator.compile(f, disable=True) is f
    with pytest.raises(TypeError):
        stator.compile(5, backend="eager")


def test_root_generators_and_coroutines_run_in_cpython():
    def gen(n):
        yield from range(n)

    async def coro(n):
        return n + 1

    assert list(keep_empty(gen)(3)) == [0, 1, 2]
    with pytest.raises(StopIteration) as stop:
        keep_empty(coro)(1).send(None)
    assert stop.value.value == 2


def test_compiled_calls_compiled():
    m = module_of("def f(x): return g(x) + 1\ndef g(x): return x * 2")
    m.g = keep_empty(m.g)
    f = keep_empty(m.f)
    assert [f(1), f(1), m.g(5), f(2)] == [3, 3, 10, 5]
    m.f = f
    m2 = module_of("def fact(n): return 1 if n < 2 else n * fact(n - 1)")
    m2.fact = keep_empty(m2.fact)
    assert [m2.fact(5), m2.fact(5), m2.fact(3)] == [120, 120, 6]


def test_explain_shows_guards_with_lines_writes_and_reasons():
    def f(xs, n):
        xs.append(n)
        return len(xs)

    explained = stator.explain(f)([1], 2)
    text = str(explained.entries[0])
    assert explained.result == 2
    assert any("len(L['xs']) == 1" in guard for guard in explained.guards)
    assert explained.writes and f"{__file__}:{f.__code__.co_firstlineno + 1}" in text
    reasons = stator.explain(_cannot_be_traced)().reasons
    assert reasons and "print" in reasons[0]


# --- threads ------------------------------------------------------------------------------------


def _in_threads(count, work):
    failed = []
    start = threading.Barrier(count)

    def run(number):
        start.wait()
        try:
            work(number)
        except BaseException as exc:
            failed.append(exc)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not failed, failed


def test_threads_compile_and_call_one_function():
    def g(x):
        return [y for y in range(x)]

    def f(x, out):
        out.append(sum(g(x)))
        return len(out)

    compiled = keep_empty(f)

    def work(number):
        out = []
        for i in range(200):
            x = (number + i) % 5
            out = []
            assert compiled(x, out) == 1 and out == [sum(range(x))]

    _in_threads(4, work)
    assert compiled.metrics["entries"] <= 8


def _compile_at_once(threads, argument):
    """Calls a compiled function in each thread; the first entry comes when all have been traced."""
    torch = pytest.importorskip("torch")

    def backend(module, examples):
        while compiled.metrics["traces"] < threads:
            time.sleep(0.001)
        return module

    def f(x, n):
        return x + n

    compiled = stator.compile(f, backend=backend)

    def work(number):
        n = argument(number)
        assert compiled(torch.ones(2), n).tolist() == [1.0 + n] * 2

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _in_threads(threads, work)
    return compiled.metrics["entries"]


def test_threads_that_compile_one_call_at_once_make_one_entry():
    assert _compile_at_once(4, lambda number: 1) == 1


def test_threads_that_compile_at_once_keep_to_the_limit():
    assert _compile_at_once(12, float) == 8


def test_threads_change_what_another_guards():
    class Box:
        value = 0

    box = Box()

    def f(n):
        before = box.value
        return before, before + n

    compiled = keep_empty(f)

    def work(number):
        for i in range(300):
            if number == 0:
                box.value = i % 6
            else:
                before, after = compiled(1)
                assert after == before + 1

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _in_threads(3, work)


def test_reset_in_one_thread_while_others_call():
    def f(x):
        return [x + 1]

    compiled = keep_empty(f)

    def work(number):
        for i in range(200):
            if number == 0:
                stator.reset()
            else:
                assert compiled(i % 3) == [i % 3 + 1]

    _in_threads(3, work)


def test_thread_started_inside_runs_plainly():
    def f(out):
        thread = threading.Thread(target=out.append, args=(1,))
        thread.start()
        thread.join()
        return len(out)

    compiled = keep_empty(f)
    for _ in range(2):
        assert compiled([]) == 1


def test_under_a_profiler_or_tracer_results_stay():
    events = []

    def g(x):
        return x + 1

    def f(x):
        return g(x) * 2

    for setter in (sys.setprofile, sys.settrace):
        compiled = keep_empty(f)
        setter(lambda *a: events.append(a[1]))
        try:
            results = [compiled(1), compiled(1), compiled(2)]
        finally:
            setter(None)
        assert results == [4, 4, 6]


# --- graphs ---------------------------------------------------------------------------------------


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def _grown(xs, d, x):
    xs.append(1)
    d["k"] = x * 2
    return x + 1


def test_backend_that_raises_wrote_nothing(torch):
    class Oops(Exception):
        pass

    def backend(graph, examples):
        raise Oops

    f = stator.compile(_grown, backend=backend)
    xs, d = [], {}
    for _ in range(2):
        with pytest.raises(Exception, match="Oops"):  # torch's own wrapper names it
            f(xs, d, torch.ones(2))
        assert xs == [] and d == {}
    assert torch.is_grad_enabled()


def test_backend_result_that_raises_wrote_nothing(torch):
    def backend(graph, examples):
        def run(*args):
            raise MemoryError("no")

        return run

    f = stator.compile(_grown, backend=backend)
    xs, d = [], {}
    try:
        f(xs, d, torch.ones(2))
    except MemoryError:
        assert xs == [] and d == {}
    else:
        assert xs == [1] and list(d) == ["k"], "run again, plainly, once"


def test_graph_that_raises_runs_the_frame_plainly_once(torch):
    def f(xs, x, i):
        xs.append(1)
        try:
            y = x[i]
        except IndexError:
            xs.append("caught")
            return None
        xs.append(2)
        return y

    compiled = stator.compile(f, backend="eager")
    xs = []
    compiled(xs, torch.ones(3), torch.tensor(0))
    assert xs == [1, 2]
    xs.clear()
    compiled(xs, torch.ones(3), torch.tensor(7))
    assert xs == [1, "caught"]


def test_graph_that_raises_after_a_mutation_reraises(torch):
    def f(xs, x, i):
        xs.append(1)
        x.add_(1)
        return x[i]

    compiled = stator.compile(f, backend="eager")
    xs, x = [], torch.zeros(3)
    compiled(xs, x, torch.tensor(0))
    assert xs == [1] and x.tolist() == [1, 1, 1]
    with pytest.raises(IndexError):
        compiled(xs, x, torch.tensor(7))
    assert x.tolist() == [2, 2, 2], "the mutation happened once, as in plain Python"


def test_torch_state_is_as_before_when_a_trace_is_dropped(torch):
    def f(x):
        with torch.no_grad():
            y = x * 2
            print(end="")
        return y, torch.is_grad_enabled()

    def g(x):
        torch.set_grad_enabled(False)
        print(end="")
        return x

    compiled = stator.compile(f, backend="eager")
    x = torch.ones(2, requires_grad=True)
    assert compiled(x)[1] and torch.is_grad_enabled()
    with pytest.raises(stator.Unsupported):
        stator.compile(g, backend="eager", fullgraph=True)(x)
    assert torch.is_grad_enabled()
    assert torch._C._len_torch_function_stack() == 0


def test_grad_mode_set_for_good_stays_set(torch):
    def f(x):
        torch.set_grad_enabled(False)
        return x * 2

    compiled = stator.compile(f, backend="eager")
    try:
        for _ in range(2):
            torch.set_grad_enabled(True)
            assert not compiled(torch.ones(2, requires_grad=True)).requires_grad
            assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)


def test_backend_gets_graph_and_real_examples(torch):
    seen = []

    def backend(graph, examples):
        seen.append((graph, examples))
        return graph.forward

    f = stator.compile(lambda x, y: torch.relu(x @ y) + 1, backend=backend, fullgraph=True)
    x, y = torch.randn(2, 3), torch.randn(3, 2)
    assert torch.equal(f(x, y), torch.relu(x @ y) + 1)
    assert torch.equal(f(y, x), torch.relu(y @ x) + 1)
    assert len(seen) == 2
    graph, examples = seen[0]
    assert isinstance(graph, torch.fx.GraphModule)
    assert [type(e) for e in examples] == [torch.Tensor] * 2
    assert [n.op for n in graph.graph.nodes] == ["placeholder"] * 2 + ["call_function"] * 3 + [
        "output"
    ]


def test_module_compiles_and_keeps_its_interface(torch):
    net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    compiled = stator.compile(net, backend="eager", fullgraph=True)
    x = torch.randn(4, 3)
    assert torch.equal(compiled(x), net(x)) and torch.equal(compiled(x), net(x))
    assert dict(compiled.named_parameters()).keys()
    loss = compiled(x).sum()
    loss.backward()
    assert net[0].weight.grad is not None


def test_tensors_die_as_early_as_in_plain(torch):
    refs = []

    def backend(graph, examples):
        def run(x):
            del examples
            return (x + 1,)

        return graph.forward

    f = stator.compile(lambda x: x + 1, backend=backend)
    x = torch.ones(2)
    ref = weakref.ref(x)
    f(x)
    f(x)
    del x
    gc.collect()
    assert ref() is None


def test_threads_trace_with_tensors(torch):
    net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())

    def f(x, n):
        with torch.no_grad():
            return net(x) * n

    compiled = stator.compile(f, backend="eager")

    def work(number):
        for i in range(20):
            x = torch.ones(2 + i % 3, 3)
            assert torch.equal(compiled(x, number % 2), f(x, number % 2))
            assert torch.is_grad_enabled()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _in_threads(3, work)


# --- audit hooks --------------------------------------------------------------------------------

_AUDITED = """
import sys
from stator import _engine

events = []

def hook(event, args):
    events.append(event)

sys.addaudithook(hook)

def inner(a, b=2):
    return a

def f(o):
    made = lambda: 1
    return made.__code__.co_argcount + inner.__code__.co_argcount + len(inner.__defaults__)

compiled = _engine.compiled(f, _engine.compiler(None, RuntimeError, True, True, 8))
events.clear()
assert compiled(None) == f(None) == 3
assert "object.__getattr__" in events
"""


def test_audit_hooks_are_no_part_of_a_trace():
    subprocess.run([sys.executable, "-c", _AUDITED], check=True)
