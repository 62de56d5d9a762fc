"""Programs with tensors: training steps, in-place updates, views, containers, modules that change."""

import collections
import functools
import math

import torch
from torch import nn


def _net(*sizes):
    net = nn.Sequential()
    for a, b in zip(sizes, sizes[1:]):
        net.append(nn.Linear(a, b))
        net.append(nn.Tanh())
    for i, p in enumerate(net.parameters()):
        nn.init.constant_(p, 0.1 * (i + 1))
    return net


def training_step_by_hand(call):
    net = _net(3, 4, 1)

    def f(x, y, lr, history):
        loss = ((net(x) - y) ** 2).mean()
        history.append(loss)
        return loss

    history = []
    x, y = torch.arange(6.0).reshape(2, 3), torch.ones(2, 1)
    for _ in range(3):
        loss = call(f, x, y, 0.1, history)
        loss.backward()
        with torch.no_grad():
            for p in net.parameters():
                p.sub_(0.1 * p.grad)
                p.grad = None


def weights_shared_between_modules(call):
    a, b = nn.Linear(2, 2), nn.Linear(2, 2)
    for p in (*a.parameters(), *b.parameters()):
        nn.init.constant_(p, 0.5)

    def f(x):
        return b(a(x))

    x = torch.ones(1, 2)
    call(f, x)
    b.weight = a.weight
    call(f, x)
    with torch.no_grad():
        a.weight.add_(1)
    call(f, x)
    b.weight = nn.Parameter(torch.zeros(2, 2))
    call(f, x)


def tensors_swapped_between_places(call):
    def f(d, xs):
        d["a"], d["b"] = d["b"], d["a"]
        xs[0], xs[-1] = xs[-1] * 2, xs[0]
        return d["a"] + xs[0]

    d = {"a": torch.ones(2), "b": torch.zeros(2)}
    xs = [torch.ones(2), torch.full((2,), 3.0)]
    for _ in range(3):
        call(f, d, xs)


def running_statistics(call):
    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(2))
            self.momentum, self.steps = 0.1, 0

        def forward(self, x):
            if self.training:
                self.steps += 1
                self.mean.mul_(1 - self.momentum).add_(x.mean(0) * self.momentum)
            return x - self.mean

    net = Norm()

    def f(x):
        return net(x)

    call.watch(net)
    for _ in range(3):
        call(f, torch.ones(3, 2))
    net.eval()
    call(f, torch.ones(3, 2))
    net.momentum = 0.5
    net.train()
    call(f, torch.ones(3, 2))


def branches_on_shapes_and_types(call):
    def f(x):
        if x.dim() == 1:
            x = x[None]
        if x.size(-1) % 2 == 0:
            x = x.reshape(-1, 2)
        if x.is_floating_point():
            return x / len(x)
        return x.float().mean()

    for x in (torch.ones(4), torch.ones(3), torch.ones(2, 4), torch.arange(4), torch.ones(4)):
        call(f, x)


def attention(call):
    def f(q, k, v, mask, scale=None):
        scale = scale or 1 / math.sqrt(q.size(-1))
        scores = (q @ k.transpose(-2, -1)) * scale
        if mask is not None:
            scores = scores.masked_fill(mask, float("-inf"))
        return torch.softmax(scores, dim=-1) @ v

    q = torch.arange(12.0).reshape(1, 3, 4) / 10
    mask = torch.triu(torch.ones(3, 3, dtype=torch.bool), 1)
    call(f, q, q, q, None)
    call(f, q, q, q, mask)
    call(f, q, q, q, None, 0.5)
    call.again(f, q, q, q, mask)


def cache_that_grows(call):
    def f(cache, x):
        if "k" in cache:
            cache["k"] = torch.cat([cache["k"], x])
        else:
            cache["k"] = x
        return cache["k"].sum()

    cache = {}
    for i in range(4):
        call(f, cache, torch.full((1, 2), float(i)))


def in_place_through_aliases(call):
    def f(x, views):
        views.append(x.view(-1))
        views[-1][0] = 5
        x[:, 1] += 1
        y = x.t()
        y.mul_(2)
        return x.sum(), views[0]

    x = torch.ones(2, 2)
    call(f, x, [])
    call(f, x, [x[0]])
    call(f, torch.ones(2, 2), [])


def result_aliases_the_input(call):
    def f(x):
        return x[0], x.view(-1), x.detach(), x.t(), x.expand(2, 2, 2)[0]

    x = torch.arange(4.0).reshape(2, 2)
    out = call(f, x)
    out[0].add_(100)
    call.note(x)
    call(f, x)


def tensor_lists_and_unpacking(call):
    def f(x):
        a, b = x
        c, *rest = x.unbind(1)
        first, second = x.split(1)
        q, r = divmod(x.size(1), 2)
        return a + b, c, rest, first - second, torch.chunk(x, 2, 1), q, r, [t.sum() for t in x]

    call(f, torch.arange(6.0).reshape(2, 3))
    call.again(f, torch.ones(2, 3))
    call(f, torch.arange(8.0).reshape(2, 4))


def named_tuple_results(call):
    Out = collections.namedtuple("Out", "loss logits")

    def f(x):
        top = x.max(dim=0)
        values, indices = torch.topk(x, 2, dim=0)
        return Out(loss=x.sum(), logits=top.values), values, indices, torch.sort(x)[1]

    call(f, torch.tensor([[1.0, 3.0], [2.0, 0.0], [5.0, 1.0]]))
    call.again(f, torch.tensor([[0.0, 3.0], [2.0, 9.0], [5.0, 1.0]]))


def in_place_on_a_result_does_not_reach_the_entry(call):
    def f(x):
        return torch.zeros(2) + x, [torch.ones(2)], torch.tensor([1.0, 2.0])

    for _ in range(3):
        out = call.target(f)(torch.ones(2))
        call.note(out)
        out[0].add_(5)
        out[1][0].mul_(7)
        out[2].zero_()


def constant_tensor_made_inside(call):
    def f(x, n):
        table = torch.tensor([[1, 2], [3, n]])
        return table, table * x, torch.arange(n), torch.full((n,), 0.5), torch.eye(2)

    call(f, torch.ones(2, dtype=torch.long), 4)
    call(f, torch.ones(2, dtype=torch.long), 2)
    call.again(f, torch.ones(2, dtype=torch.long), 4)


def data_and_detach(call):
    def f(x):
        y = x.detach() * 2
        z = (x * 3).detach()
        return y.requires_grad, z, (x * 2).requires_grad

    call(f, torch.ones(2, requires_grad=True))
    call(f, torch.ones(2))


def parameter_data_replaced(call):
    net = nn.Linear(2, 2)
    nn.init.constant_(net.weight, 0.5)
    nn.init.constant_(net.bias, 0.0)

    def f(x):
        return net(x)

    x = torch.ones(1, 2)
    call(f, x)
    net.weight.data = torch.ones(2, 2)
    call.again(f, x)
    net.weight.data = torch.ones(3, 2)
    call(f, x)
    net.weight.requires_grad_(False)
    net.weight.data = torch.ones(2, 2)
    call(f, x)


def module_moved_to_another_type(call):
    net = _net(2, 2)

    def f(x):
        return net(x)

    call(f, torch.ones(1, 2))
    net.double()
    call(f, torch.ones(1, 2, dtype=torch.float64))
    net.float()
    call.again(f, torch.ones(1, 2))


def forward_with_python_state(call):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(2, 2, bias=False) for _ in range(3))
            for layer in self.layers:
                nn.init.constant_(layer.weight, 0.5)
            self.skip, self.seen = set(), []

        def forward(self, x, *, residual=True, **options):
            for i, layer in enumerate(self.layers):
                if i in self.skip:
                    continue
                y = layer(x)
                x = x + y if residual else y
                self.seen.append(i)
            return {"x": x, "options": options, "n": len(self.seen)}

    net = Net()

    def f(x, **options):
        return net(x, **options)

    x = torch.ones(1, 2)
    call.watch(net)
    call(f, x)
    call(f, x)
    net.skip.add(1)
    call(f, x)
    call(f, x, residual=False, tag="t")
    net.seen.clear()
    call(f, x)


def hooks_that_write(call):
    torch.utils.hooks.RemovableHandle.next_id = 0  # keys of hooks are numbers of the process
    net, log = _net(2, 2), []

    def hook(module, args, out):
        log.append(type(module).__name__)
        return out * 2

    def f(x):
        return net(x)

    call.watch(log)
    x = torch.ones(1, 2)
    call(f, x)
    handle = net[0].register_forward_hook(hook)
    call(f, x)
    call(f, x)
    handle.remove()
    call(f, x)


def random_state_goes_on_as_in_plain(call):
    def f(x):
        return x + torch.rand(2), torch.bernoulli(torch.full((2,), 0.5))

    torch.manual_seed(1)
    for _ in range(3):
        call(f, torch.zeros(2))
        call.note(torch.rand(1))


def gradients_of_inputs(call):
    def f(x, w):
        y = torch.sin(x) * w
        return y.sum(), y

    for _ in range(2):
        x = torch.ones(2, requires_grad=True)
        w = torch.full((2,), 2.0, requires_grad=True)
        loss, y = call.target(f)(x, w)
        (loss + y.prod()).backward()
        call.note((x.grad, w.grad))


def grad_read_inside(call):
    def f(p, lr):
        if p.grad is None:
            return None
        return p - lr * p.grad

    p = torch.ones(2, requires_grad=True)
    call(f, p, 0.1)
    (p * 3).sum().backward()
    call(f, p, 0.1)
    p.grad.zero_()
    call(f, p, 0.1)
    p.grad = None
    call(f, p, 0.1)


def zero_dim_and_empty_tensors(call):
    def f(x):
        return x.sum(), x * 2, x.numel(), bool(x.numel()), x.shape == torch.Size([0])

    for x in (torch.tensor(3.0), torch.ones(0), torch.ones(0, 2), torch.tensor(4.0)):
        call(f, x)


def comparisons_and_masks(call):
    def f(x, t):
        mask = (x > t) & (x != 3)
        return (
            x[mask.nonzero(as_tuple=True)] if False else torch.where(mask, x, -x),
            mask.any(),
            ~mask,
        )

    call(f, torch.arange(4.0), 1)
    call(f, torch.arange(4.0), 2.5)
    call.again(f, torch.ones(4), 1)


def dtype_arguments(call):
    def f(x, dtype):
        return x.to(dtype), torch.zeros(2, dtype=dtype), x.type_as(torch.zeros(1, dtype=dtype))

    for dtype in (torch.float32, torch.float64, torch.int32, torch.float32):
        call(f, torch.ones(2), dtype)


def exceptions_from_shapes(call):
    def f(x, y, log):
        log.append("in")
        try:
            return x @ y
        except RuntimeError as e:
            log.append("caught")
            return x.sum() + y.sum()

    call(f, torch.ones(2, 3), torch.ones(3, 2), [])
    call(f, torch.ones(2, 3), torch.ones(2, 3), [])
    call(f, torch.ones(2, 3), torch.ones(3, 2), [])


def uncaught_shape_error(call):
    def f(x, y, log):
        log.append("in")
        return x @ y

    log = []
    call(f, torch.ones(2, 3), torch.ones(3, 2), log)
    call(f, torch.ones(2, 3), torch.ones(2, 3), log)
    call(f, torch.ones(2, 3), torch.ones(3, 2), log)


def results_of_several_tensors_made_by_hand(call):
    def f(x, y):
        made = torch.return_types.max((x + 1, y))
        listed = torch.return_types.sort([x, y * 2])
        return made, made.values, made.indices is y, tuple(listed), len(listed)

    call(f, torch.ones(2), torch.zeros(3))
    call.again(f, torch.ones(2), torch.ones(3))
    call.traced(f)


def sizes_as_keys(call):
    seen = {}

    def f(x):
        seen[x.shape] = seen.get(x.shape, 0) + 1
        return x + seen[x.shape]

    call.watch(seen)
    call(f, torch.ones(2))
    call(f, torch.ones(2))
    call(f, torch.ones(3, 1))
    call.traced(f)


def cached_functions_of_tensors(call):
    @functools.lru_cache
    def mask(n):
        return torch.ones(n).cumsum(0)

    @functools.lru_cache
    def scaled(x, k=2):
        return x * k

    @functools.lru_cache
    def noise(n):
        return torch.rand(n)

    def f(x):
        return x + mask(3), mask(3) is mask(3), scaled(x), scaled(x) is scaled(x)

    def kept(x):
        return x + mask(4), mask(4)

    def drawn(x):
        return (noise(3) is noise(3)) + x

    call(f, torch.ones(3))
    call(f, torch.zeros(3))
    mask(4).add_(1)
    call(kept, torch.ones(4))
    call(kept, torch.ones(4))
    mask(4).add_(1)
    call(kept, torch.ones(4))
    call(drawn, torch.ones(3))
    call(drawn, torch.ones(3))
