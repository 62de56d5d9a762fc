"""DTensors, functional collectives and DistributedDataParallel: in this process, and in two."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("this torch has no distributed package", allow_module_level=True)

import torch.distributed as dist  # noqa: E402
import torch.distributed._functional_collectives as collectives  # noqa: E402
from helpers import Recorder, count  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard  # noqa: E402

import stator  # noqa: E402

BACKENDS = ["eager", "aot_eager"]
RANKS = os.path.join(os.path.dirname(__file__), "ranks.py")
mesh: Any = None


@pytest.fixture(autouse=True)
def group(request, tmp_path):
    global mesh
    if "two_processes" in request.node.name:
        yield None
        return
    store = f"file://{tmp_path}/store"
    dist.init_process_group("gloo", init_method=store, rank=0, world_size=1)
    mesh = init_device_mesh("cpu", (1,))
    yield dist.group.WORLD
    dist.destroy_process_group()


def values() -> Any:
    return torch.arange(6.0).reshape(2, 3) - 2


def sharded(dim: int = 0) -> Any:
    return DTensor.from_local(values(), mesh, [Shard(dim)])


def seen(value: Any) -> Any:
    if isinstance(value, DTensor):
        return "DTensor", value.to_local().tolist(), value.placements, value.requires_grad
    if isinstance(value, torch.Tensor):
        return type(value).__name__, value.tolist(), value.requires_grad
    return [seen(item) for item in value] if isinstance(value, (tuple, list)) else value


def local(x):
    return DTensor.from_local(x.sin(), mesh, [Shard(0)], run_check=False)


DTENSORS: dict[str, Any] = {
    "operations": lambda x, d: (d.sin() * 2 + d, d.sum(), d @ d.t()),
    "from_local": lambda x, d: local(x) * 2 + d,
    "to_local": lambda x, d: d.to_local() + x,
    "redistribute": lambda x, d: d.redistribute(mesh, [Replicate()]) + 1,
    "by keyword": lambda x, d: d.redistribute(placements=(Replicate(),)).to_local() + 1,
    "full_tensor": lambda x, d: d.full_tensor() + 1,
    "partial": lambda x, d: DTensor.from_local(x, mesh, [Partial()]).full_tensor(),
    "placements": lambda x, d: (d.placements, d.sin().placements, d.device_mesh is mesh, x + 1),
    "sizes": lambda x, d: (d.shape, d.to_local().shape, d.dtype, x + 1),
    "within": lambda x, d: d._local_tensor + 1,
    "all": lambda x, d: (local(x) + d).redistribute(mesh, [Replicate()]).to_local() + x,
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", DTENSORS)
def test_dtensors(program, backend):
    f = DTENSORS[program]
    fast = stator.compile(f, backend=backend, fullgraph=True)
    for _ in range(3):
        assert seen(fast(values(), sharded())) == seen(f(values(), sharded()))
    assert count(fast) == 1


def test_another_placement_is_another_entry():
    fast = stator.compile(lambda d: d.sin() + 1, backend="eager", fullgraph=True)
    for dim, entries in ((0, 1), (1, 2), (0, 2), (1, 2)):
        assert seen(fast(sharded(dim))) == seen(sharded(dim).sin() + 1)
        assert count(fast) == entries


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_of_dtensors(backend):
    def f(x, weight):
        y = DTensor.from_local(x, mesh, [Shard(0)], run_check=False)
        return (y @ weight.t()).redistribute(mesh, [Replicate()]).to_local().pow(2).sum()

    def run(f):
        x = values().requires_grad_()
        weight = torch.nn.Parameter(DTensor.from_local(values() + 1, mesh, [Replicate()]))
        f(x, weight).backward()
        return seen(x.grad), seen(weight.grad)

    fast = stator.compile(f, backend=backend, fullgraph=True)
    assert run(fast) == run(fast) == run(f)


COLLECTIVES: dict[str, Any] = {
    "all_reduce": lambda x, group: collectives.all_reduce(x.sin(), "sum", group) + 1,
    "on a mesh": lambda x, group: collectives.all_reduce(x.sin(), "avg", (mesh, 0)) + 1,
    "by its name": lambda x, group: torch.ops._c10d_functional.wait_tensor(
        torch.ops._c10d_functional.all_reduce(x, "sum", group.group_name)
    ),
    "all_gather": lambda x, group: collectives.all_gather_tensor(x.sin(), 0, group) + 1,
    "reduce_scatter": lambda x, group: collectives.reduce_scatter_tensor(x, "sum", 0, group) + 1,
    "all_to_all": lambda x, group: collectives.all_to_all_single(x.sin(), None, None, group) + 1,
    "coalesced": lambda x, group: [
        y + 1 for y in collectives.all_reduce_coalesced([x, x + 1], "sum", group)
    ],
    "numbers": lambda x, group: (
        x + dist.get_rank() + dist.get_world_size(), group.rank(), group.size(), mesh.size(),
        mesh.get_local_rank(), dist.is_initialized(),
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", COLLECTIVES)
def test_collectives(program, backend, group):
    f = COLLECTIVES[program]
    fast = stator.compile(f, backend=backend, fullgraph=True)
    for i in range(2):
        assert seen(fast(values() + i, group)) == seen(f(values() + i, group))
    assert count(fast) == 1


def test_the_nodes_of_a_collective(group):
    graphs = Recorder()
    stator.compile(COLLECTIVES["all_reduce"], backend=graphs, fullgraph=True)(values(), group)
    nodes = [str(node.target) for node in graphs.graphs[0].graph.nodes]
    assert "_c10d_functional.all_reduce" in nodes and "_c10d_functional.wait_tensor" in nodes


def test_another_group_is_another_entry():
    new = dist.new_group([0])

    def f(x, group):
        return x + len(group.group_name) + group.size()

    fast = stator.compile(f, backend="eager", fullgraph=True)
    for g in (dist.group.WORLD, new, dist.group.WORLD):
        assert seen(fast(values(), g)) == seen(f(values(), g))


@pytest.mark.parametrize("backend", BACKENDS)
def test_collectives_that_write(backend):
    def f(x):
        y = x.clone()
        dist.all_reduce(y)
        return y + 1

    fast = stator.compile(f, backend=backend)
    for _ in range(2):
        assert seen(fast(values())) == seen(f(values()))


# -- DistributedDataParallel --


class Deep(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(64, 64) for _ in range(4)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def parallel(megabytes: float) -> Any:
    torch.manual_seed(0)
    return torch.nn.parallel.DistributedDataParallel(Deep(), bucket_cap_mb=megabytes)


@pytest.mark.parametrize(
    "mode, megabytes, graphs",
    [(True, 0.01, 4), ("ddp_optimizer", 0.02, 2), (True, 25, 1), (False, 0.02, 1)],
)
def test_graphs_are_split_by_buckets(mode, megabytes, graphs):
    seen_by = Recorder()
    net = parallel(megabytes)
    with torch._dynamo.config.patch(optimize_ddp=mode):
        stator.compile(net, backend=seen_by)(torch.ones(2, 64)).sum().backward()
    assert len(seen_by.graphs) == graphs


@pytest.mark.parametrize("backend", [*BACKENDS, "inductor"])
def test_gradients_of_a_parallel_module(backend):
    def run(compile):
        net = parallel(0.02)
        call = compile(net)
        gradients = []
        for rows in (2, 3, 5):  # sizes are left open from the second on
            net.zero_grad()
            call(torch.full((rows, 64), 0.1)).sum().backward()
            gradients += [p.grad.clone() for p in net.parameters()]
        return gradients

    want = run(lambda net: net)
    torch.testing.assert_close(run(lambda net: stator.compile(net, backend=backend)), want)


def in_two_processes(folder: Any, fails: bool) -> list[tuple[int, str]]:
    """Exit status and output of both."""
    command = [sys.executable, RANKS, str(folder)]
    both = [
        subprocess.Popen([*command, str(rank), str(int(fails))], stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True)
        for rank in range(2)
    ]  # fmt: skip
    try:
        texts = [process.communicate(timeout=240)[0] for process in both]
    finally:
        for process in both:
            process.kill()
    return [(process.returncode, text) for process, text in zip(both, texts, strict=True)]


@pytest.mark.timeout(300)
def test_two_processes_give_the_same(tmp_path):
    for status, text in in_two_processes(tmp_path, False):
        assert status == 0, text


@pytest.mark.timeout(300)
def test_two_processes_one_of_which_fails(tmp_path):
    (first, _), (second, text) = in_two_processes(tmp_path, True)
    assert "on purpose" in text and second != 0
    assert first != 0
