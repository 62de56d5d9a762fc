"""Everything about a tensor that a program can read, changed between two calls; and modules."""

import torch
from torch import nn


def _again_and_changed(call, f, make, change):
    x = make()
    call(f, x)
    call.again(f, make())
    call(f, change(make()))
    call.again(f, make())


def values_do_not_matter(call):
    def f(x):
        return x * 2 + 1

    call(f, torch.ones(3))
    call.again(f, torch.zeros(3))
    call.again(f, torch.arange(3.0))
    call.one_entry(f)


def dtype(call):
    def f(x):
        return x + 1, x.dtype

    for kind in (torch.float32, torch.float64, torch.int64, torch.bool, torch.complex64):
        call(f, torch.ones(2, dtype=kind))
    call.again(f, torch.ones(2))


def sizes(call):
    def f(x):
        return x.sum(), x.shape, x.size(0), len(x), x.dim(), x.numel()

    for shape in ((2, 3), (3, 2), (6,), (2, 3, 1), (0,), (1, 1)):
        call(f, torch.ones(shape))
    call.again(f, torch.zeros(2, 3))


def strides(call):
    def f(x):
        return x + 1, x.stride(), x.is_contiguous()

    call(f, torch.arange(6.0).reshape(2, 3))
    call(f, torch.arange(6.0).reshape(3, 2).t())
    call(f, torch.arange(12.0).reshape(2, 6)[:, ::2])
    call(f, torch.ones(1).expand(2, 3))


def storage_offset(call):
    def f(x):
        return x * 2, x.storage_offset()

    base = torch.arange(6.0)
    call(f, base[:3])
    call(f, base[3:])


def requires_grad(call):
    def f(x):
        y = x * 2
        return y, y.requires_grad, x.requires_grad

    call(f, torch.ones(2))
    call(f, torch.ones(2, requires_grad=True))
    call.again(f, torch.ones(2))
    call.again(f, torch.ones(2, requires_grad=True))


def requires_grad_changed_in_place(call):
    def f(x):
        return (x * 2).requires_grad

    x = torch.ones(2)
    call(f, x)
    x.requires_grad_()
    call(f, x)
    x.requires_grad_(False)
    call.again(f, x)


def leaf_or_not(call):
    def f(x):
        return x.is_leaf, x.grad_fn is None, x * 2

    call(f, torch.ones(2, requires_grad=True))
    call(f, torch.ones(2, requires_grad=True) * 2)


def grad_there_or_not(call):
    def f(x):
        return None if x.grad is None else x.grad * 2

    x = torch.ones(2, requires_grad=True)
    call(f, x)
    x.grad = torch.ones(2)
    call(f, x)
    x.grad = torch.ones(2) * 5
    call.again(f, x)
    x.grad = None
    call.again(f, x)


def device_by_itself(call):
    def f(d):
        return d.type, d.index, torch.zeros(2, device=d).device

    call(f, torch.device("cpu"))
    call(f, torch.device("meta"))
    call.again(f, torch.device("cpu"))


def device(call):
    def f(x):
        return x.device, (x + 1).device

    call(f, torch.ones(2))
    call(f, torch.ones(2, device="meta"))
    call.again(f, torch.zeros(2))


def layout(call):
    def f(x):
        return x.layout, x.is_sparse

    call(f, torch.ones(2, 2))
    call(f, torch.ones(2, 2).to_sparse())


def conjugate_and_negative_bits(call):
    def f(x):
        return x * 2, x.is_conj(), x.is_neg()

    x = torch.ones(2, dtype=torch.complex64) * 1j
    call(f, x)
    call(f, x.conj())
    call(f, x.conj().imag)


def subclass(call):
    class T(torch.Tensor):
        pass

    def f(x):
        return type(x).__name__, isinstance(x, torch.Tensor)

    call(f, torch.ones(2))
    call(f, torch.ones(2).as_subclass(T))
    call(f, nn.Parameter(torch.ones(2)))
    call.again(f, torch.zeros(2))


def parameter_or_tensor(call):
    def f(x):
        return isinstance(x, nn.Parameter), x * 2

    call(f, torch.ones(2))
    call(f, nn.Parameter(torch.ones(2)))


def inference_tensor(call):
    def f(x):
        return x.is_inference(), x + 1

    with torch.inference_mode():
        x = torch.ones(2)
    call(f, torch.ones(2))
    call(f, x)


def attribute_of_a_tensor(call):
    def f(x):
        return x + 1, getattr(x, "tag", None)

    x = torch.ones(2)
    call(f, x)
    x.tag = 5
    call(f, x)
    x.tag = 6
    call(f, x)


def grad_mode(call):
    def f(x):
        return (x * 2).requires_grad, torch.is_grad_enabled()

    x = torch.ones(2, requires_grad=True)
    call(f, x)
    with torch.no_grad():
        call(f, x)
        call.again(f, x)
    call.again(f, x)


def inference_mode(call):
    def f(x):
        return x * 2, torch.is_inference_mode_enabled()

    x = torch.ones(2)
    call(f, x)
    with torch.inference_mode():
        call(f, x)
    call.again(f, x)


def default_dtype(call):
    def f(x):
        return x + torch.ones(2), torch.tensor(1.0).dtype

    call(f, torch.ones(2))
    torch.set_default_dtype(torch.float64)
    try:
        call(f, torch.ones(2))
    finally:
        torch.set_default_dtype(torch.float32)
    call(f, torch.ones(2))


def autocast(call):
    def f(x, w):
        return x @ w

    x, w = torch.ones(2, 2), torch.ones(2, 2)
    call(f, x, w)
    with torch.autocast("cpu", torch.bfloat16):
        call(f, x, w)
    call.again(f, x, w)


def deterministic(call):
    def f(x):
        return x + 1, torch.are_deterministic_algorithms_enabled()

    call(f, torch.ones(2))
    torch.use_deterministic_algorithms(True)
    try:
        call(f, torch.ones(2))
    finally:
        torch.use_deterministic_algorithms(False)


def number_beside_a_tensor(call):
    def f(x, n):
        return x * n

    call(f, torch.ones(2), 2)
    call(f, torch.ones(2), 3)
    call(f, torch.ones(2), 2.0)
    call(f, torch.ones(2), True)
    call(f, torch.ones(2), -0.0)
    call(f, torch.ones(2), 0.0)
    call.again(f, torch.ones(2), 2)


def same_tensor_twice(call):
    def f(a, b):
        a.add_(1)
        return b * 2, a is b

    call(f, torch.ones(2), torch.ones(2))
    x = torch.ones(2)
    call(f, x, x)
    call(f, torch.ones(2), torch.ones(2))


def views_of_one_storage(call):
    def f(a, b):
        a.add_(1)
        return b * 2

    call(f, torch.ones(2), torch.ones(2))
    x = torch.ones(4)
    call(f, x[:2], x[1:3])
    call(f, x[:2], x[2:])


def tensors_in_containers(call):
    def f(d, xs):
        return d["a"] + xs[0] * len(xs)

    call(f, {"a": torch.ones(2)}, [torch.ones(2)])
    call.again(f, {"a": torch.zeros(2)}, [torch.ones(2)])
    call(f, {"a": torch.ones(2)}, [torch.ones(2)] * 2)
    call(f, {"a": torch.ones(3)}, [torch.ones(3)])


def tensor_or_none(call):
    def f(x, m):
        return x if m is None else x * m

    x = torch.ones(2)
    call(f, x, None)
    call(f, x, torch.ones(2))
    call.again(f, x, None)


def tensor_global_and_cell(call):
    w = torch.ones(2)

    def f(x):
        return x + w

    x = torch.ones(2)
    call(f, x)
    w = torch.zeros(2)
    call.again(f, x)
    w = torch.zeros(1)
    call(f, x)
    w = 5
    call(f, x)


class _Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.b = nn.Linear(3, 2)
        self.scale = 2
        for p in self.parameters():
            nn.init.constant_(p, 0.5)

    def forward(self, x):
        return self.b(torch.relu(self.a(x))) * self.scale


def module_called(call):
    net, x = _Net(), torch.ones(2, 3)

    def f(x):
        return net(x)

    call(f, x)
    call.again(f, x)
    with torch.no_grad():
        net.a.weight.mul_(2)
    call.again(f, x)
    net.scale = 3
    call(f, x)
    net.scale = 2
    call.again(f, x)
    call.traced(f)


def module_part_replaced(call):
    net, x = _Net(), torch.ones(2, 3)

    def f(x):
        return net(x)

    call(f, x)
    old, net.a = net.a, nn.Identity()
    call(f, x)
    net.a = old
    call.again(f, x)
    net.a = nn.Linear(3, 3, bias=False)
    nn.init.constant_(net.a.weight, 0.5)
    call(f, x)


def module_parameter_replaced(call):
    net, x = _Net(), torch.ones(2, 3)

    def f(x):
        return net(x)

    call(f, x)
    net.a.weight = nn.Parameter(torch.ones(3, 3))
    call.again(f, x)
    net.a.bias = None
    call(f, x)
    net.a.weight.data = torch.ones(3, 3, dtype=torch.float64)
    call(f, x)


def module_hooks_added(call):
    torch.utils.hooks.RemovableHandle.next_id = 0  # keys of hooks are numbers of the process
    net, x = _Net(), torch.ones(2, 3)
    seen = []

    def f(x):
        return net(x)

    call.watch(seen)
    call(f, x)
    handle = net.a.register_forward_hook(lambda m, i, o: o * 10)
    call(f, x)
    handle.remove()
    call.again(f, x)
    handle = net.b.register_forward_pre_hook(lambda m, i: seen.append(1))
    call(f, x)
    handle.remove()
    handle = nn.modules.module.register_module_forward_hook(lambda m, i, o: seen.append(2))
    try:
        call(f, x)
    finally:
        handle.remove()
    call.again(f, x)


def module_mode_switched(call):
    net, x = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)), torch.arange(6.0).reshape(2, 3)
    nn.init.constant_(net[0].weight, 0.5)
    nn.init.constant_(net[0].bias, 0.5)

    def f(x):
        return net(x)

    call(f, x)
    net.eval()
    call(f, x)
    net.train()
    call(f, x)


def module_buffers_written(call):
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", torch.zeros(1))
            self.calls = 0

        def forward(self, x):
            self.n = self.n + 1
            self.calls += 1
            return x * self.n

    net = Counter()

    def f(x):
        return net(x)

    call.watch(net)
    for _ in range(3):
        call(f, torch.ones(2))


def module_list_and_dict(call):
    net = nn.ModuleList([nn.Identity(), nn.ReLU()])
    names = nn.ModuleDict({"a": nn.Identity()})

    def f(x):
        for layer in net:
            x = layer(x) + 1
        for key, layer in names.items():
            x = layer(x) * len(key)
        return x

    x = torch.ones(2)
    call(f, x)
    call.again(f, x)
    net.append(nn.Sigmoid())
    call(f, x)
    names["bb"] = nn.Identity()
    call(f, x)


def module_forward_replaced(call):
    net, x = nn.Linear(2, 2), torch.ones(2)
    nn.init.constant_(net.weight, 0.5)
    nn.init.constant_(net.bias, 0.5)

    def f(x):
        return net(x)

    call(f, x)
    net.forward = lambda x: x + 100
    call(f, x)
    del net.forward
    call.again(f, x)


def torch_function_replaced(call):
    def f(x):
        return torch.relu(x)

    x = torch.tensor([-1.0, 1.0])
    call(f, x)
    old = torch.relu
    torch.relu = torch.neg
    try:
        call(f, x)
    finally:
        torch.relu = old
    call.again(f, x)


# As people write them who override torch's functions.
_HANDLERS = {torch.Tensor.add: "add", torch.Tensor.shape: "shape", torch.relu: "relu"}


def table_of_torch_functions(call):
    def f(x):
        kind = type(x)
        return x + 1, _HANDLERS.get(kind.add), _HANDLERS.get(kind.shape), _HANDLERS.get(torch.relu)

    call(f, torch.ones(2))
    call.again(f, torch.zeros(2))
    del _HANDLERS[torch.Tensor.add]
    call(f, torch.ones(2))
    _HANDLERS[torch.Tensor.add] = "add"
    call(f, torch.ones(2))
