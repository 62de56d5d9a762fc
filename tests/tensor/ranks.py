"""What each of two processes does for test_distributed.py: python ranks.py FOLDER RANK FAILS.

Compiled and plain results are compared here; anything that differs is an exception. With FAILS, rank
1 raises in the middle of a training step, and nobody may wait for it for ever."""

import datetime
import sys

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

import stator


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(64, 64) for _ in range(4)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
        return x


def parallel():
    torch.manual_seed(0)
    return torch.nn.parallel.DistributedDataParallel(Net(), bucket_cap_mb=0.02)


def train(rank, backend):
    """Three steps; the parameters at the end."""
    net = parallel()
    call = stator.compile(net, backend=backend) if backend else net
    for step in range(3):
        net.zero_grad()
        call(torch.full((2 + rank, 64), 0.1 * (1 + rank + step))).sum().backward()
        with torch.no_grad():
            for p in net.parameters():
                p -= 0.01 * p.grad
    return [p.detach().clone() for p in net.parameters()]


def check_training(rank):
    want = train(rank, None)
    for backend in ("eager", "aot_eager"):
        torch.testing.assert_close(train(rank, backend), want)
    seen = [torch.empty_like(want[0]) for _ in range(2)]
    dist.all_gather(seen, want[0])
    torch.testing.assert_close(seen[0], seen[1])


def check(f, *args):
    want = f(*args)
    for backend in ("eager", "aot_eager"):
        fast = stator.compile(f, backend=backend, fullgraph=True)
        for _ in range(2):
            torch.testing.assert_close(fast(*args), want)
        assert fast.metrics["entries"] == 1


def check_tensors(rank):
    mesh = init_device_mesh("cpu", (2,))
    x = torch.arange(8.0).reshape(4, 2) + rank
    d = distribute_tensor(torch.arange(8.0).reshape(4, 2), mesh, [Shard(0)])

    def products(x, d):
        y = DTensor.from_local(x.sin(), mesh, [Shard(0)], run_check=False)
        z = d @ d.redistribute(mesh, [Replicate()]).t()
        return (y * 2).redistribute(mesh, [Replicate()]).to_local(), z.full_tensor(), d.to_local()

    def reduced(x):
        y = collectives.all_reduce(x.sin(), "sum", mesh)
        return y * dist.get_world_size() + dist.get_rank()

    def gathered(x):
        return collectives.all_gather_tensor(x, 0, (mesh, 0)) + 1

    check(products, x, d)
    check(reduced, x)
    check(gathered, x)


def fail(rank):
    net = parallel()
    call = stator.compile(net, backend="aot_eager")
    call(torch.ones(2, 64)).sum().backward()
    if rank == 1:
        raise RuntimeError("on purpose")
    call(torch.ones(2, 64)).sum().backward()
    dist.barrier()


def main(folder, rank, fails):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2,
                            timeout=datetime.timedelta(seconds=60))  # fmt: skip
    if fails:
        fail(rank)
    check_training(rank)
    check_tensors(rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3] == "1")
