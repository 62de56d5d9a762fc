"""Programs with tensors that a naive tracer gets wrong."""

import functools

import torch
from torch import nn


def map_of_an_outside_append(call):
    def f(out, ts):
        list(map(out.append, [t + 1 for t in ts]))
        return out[0] + out[-1]

    out = []
    call(f, out, [torch.ones(2), torch.ones(2)])
    call(f, [], [torch.ones(2), torch.ones(2)])
    call.traced(f)


def reduce_of_getattr(call):
    class O:
        pass

    def f(names, o, x):
        return functools.reduce(getattr, names, o) + x

    o = O()
    o.a = O()
    o.a.w = torch.ones(2)
    call(f, ["a", "w"], o, torch.ones(2))
    o.a.w = torch.zeros(2)
    call.again(f, ["a", "w"], o, torch.ones(2))


def sum_of_a_list_of_tensors(call):
    def f(ts):
        return sum(ts), sum([t * 2 for t in ts], torch.zeros(2))

    call(f, [torch.ones(2), torch.ones(2)])
    call.again(f, [torch.zeros(2), torch.ones(2)])


def torch_functions_as_values(call):
    def f(fns, x):
        fns.append(torch.relu)
        return list(map(torch.relu, [x, -x])), functools.partial(torch.add, 1)(x), fns[0](x)

    call(f, [], torch.tensor([-1.0, 2.0]))
    call.again(f, [], torch.tensor([-1.0, 2.0]))


def step_passed_through(call):
    def f(x, step):
        return {"loss": x + 1, "step": step}

    for step in range(20):
        call(f, torch.ones(2), step)
    call.one_entry(f)


def step_asked_for_none(call):
    def f(x, step):
        if step is None:
            return x
        return x + 1

    for step in range(20):
        call(f, torch.ones(2), step)
    call.one_entry(f)


def contiguous_is_the_tensor_itself(call):
    def f(x):
        y = x.contiguous()
        return y, y is x, x.to(torch.float32) is x, x.float() is x

    x = torch.ones(2, 3)
    call(f, x)
    call(f, x.t())
    call(f, torch.ones(2, 3, dtype=torch.float64))
    call.again(f, torch.zeros(2, 3))


def in_place_returns_the_tensor_itself(call):
    def f(x):
        y = x.add_(1)
        z = y
        z *= 2
        return y is x, z is x, y

    x = torch.ones(2)
    for _ in range(3):
        call(f, x)
    call.traced(f)


def out_argument(call):
    def f(x, o):
        y = torch.add(x, 1, out=o)
        return y is o, o * 2

    call(f, torch.ones(2), torch.zeros(2))
    call.again(f, torch.ones(2), torch.zeros(2))


def handler_around_a_graph_that_raises(call):
    def f(x, i, log):
        log.append(1)
        try:
            y = x[i]
            log.append(2)
            return y + 1
        except IndexError:
            return "caught"

    log = []
    call(f, torch.ones(3), torch.tensor(1), log)
    call(f, torch.ones(3), torch.tensor(9), log)
    call(f, torch.ones(3), torch.tensor(2), log)


def graph_that_raises_writes_nothing_twice(call):
    def f(x, i, log):
        log.append(1)
        return x[i]

    log = []
    call(f, torch.ones(3), torch.tensor(1), log)
    call(f, torch.ones(3), torch.tensor(9), log)


def value_of_a_tensor_asked(call):
    def f(x, log):
        log.append("in")
        if x.sum() > 0:
            return x + 1
        return x - 1

    log = []
    call(f, torch.ones(2), log)
    call(f, -torch.ones(2), log)


def item_of_a_tensor(call):
    def f(x):
        return x.item() + 1, int(x), float(x), x.tolist()

    call(f, torch.tensor(1))
    call(f, torch.tensor(2))


def random_numbers(call):
    def f(x):
        return x + torch.rand(2), torch.randn(2), nn.functional.dropout(x)

    torch.manual_seed(0)
    for _ in range(3):
        call(f, torch.ones(2))


def mutation_through_a_view(call):
    def f(x):
        v = x[0]
        v.mul_(5)
        x[1] = 7
        x[2:] += 1
        return x.sum(), v

    x = torch.ones(4)
    for _ in range(2):
        call(f, x)


def tensor_stored_outside(call):
    class O:
        pass

    def f(o, d, xs, x):
        o.y = x + 1
        d["y"] = o.y
        xs.append(o.y * 2)
        return o.y

    o, d, xs = O(), {}, []
    for _ in range(2):
        call(f, o, d, xs, torch.ones(2))
    call.traced(f)


def tensor_given_out_twice(call):
    def f(x):
        y = x + 1
        return y, [y, (y,)], {"y": y, "x": x}

    call(f, torch.ones(2))
    call.again(f, torch.ones(2))


def result_is_an_input(call):
    def f(x, y):
        return x, [y, x]

    call(f, torch.ones(2), torch.ones(2))
    call.again(f, torch.ones(3), "anything")


def generator_of_tensors(call):
    def f(xs):
        def g():
            for x in xs:
                yield x * 2

        return torch.stack(list(g())), max(len(x) for x in g())

    call(f, [torch.ones(2), torch.zeros(2)])
    call.again(f, [torch.ones(2), torch.zeros(2)])


def no_grad_inside(call):
    def f(x):
        with torch.no_grad():
            y = x * 2
        z = x * 3
        return y, z, torch.is_grad_enabled()

    x = torch.ones(2, requires_grad=True)
    call(f, x)
    call.again(f, x)
    call.note(torch.is_grad_enabled())


def backward_through_the_graph(call):
    def f(x, w):
        return (torch.relu(x @ w) ** 2).sum()

    for _ in range(2):
        w = torch.full((2, 2), 0.5, requires_grad=True)
        call.target(f)(torch.ones(2, 2), w).backward()
        call.note(w.grad)


def tensors_as_dict_keys(call):
    def f(a, b):
        d = {a: 1, b: 2}
        return d[a], len(d), a in d

    x = torch.ones(2)
    call(f, x, torch.ones(2))
    call(f, x, x)


def tensors_compared(call):
    def f(a, b):
        return a == b, a is b, (a != b).sum(), a.equal(b) if False else 0

    call(f, torch.ones(2), torch.ones(2))
    call(f, torch.ones(2), torch.zeros(2))


def shape_used_as_numbers(call):
    def f(x):
        b, n = x.shape
        out = torch.zeros(b, n * 2)
        for i in range(b):
            out[i, :n] = x[i]
        return out, x.reshape(-1, b).shape[0], [0] * n

    call(f, torch.ones(2, 3))
    call(f, torch.ones(3, 2))
    call.again(f, torch.zeros(2, 3))


def optimizer_like_loop(call):
    def f(params, grads, state, lr):
        for i, (p, g) in enumerate(zip(params, grads)):
            m = state.setdefault(i, torch.zeros_like(p))
            m.mul_(0.9).add_(g)
            p.sub_(m * lr)
        state["step"] = state.get("step", 0) + 1

    params, state = [torch.ones(2), torch.ones(3)], {}
    for _ in range(3):
        call(f, params, [torch.ones(2), torch.ones(3)], state, 0.1)


def tensors_as_keys(call):
    def f(t, d, s):
        s.add(t)
        d[t] = d.get(t, 0) + 1
        return t in d, t in s, len(d), len(s)

    t = torch.ones(2)
    d, s = {t: 1}, {t}
    call.watch(d, s)
    call(f, t, d, s)
    call(f, torch.zeros(2), d, s)
