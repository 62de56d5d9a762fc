"""Each test runs with Stator installed as torch's compiler, unless it asks for stock Dynamo."""

import pytest

import stator
from tests.spec.helpers import torch


@pytest.fixture(autouse=True)
def engine(request):
    """Who compiles: "stator" (the default), or "stock". The marks `both` and `missing` ask."""
    name = getattr(request, "param", "stator")
    if torch is None:
        yield name
        return
    assert name in ("stator", "stock")
    if name == "stator":
        stator.install()
    _fresh()
    try:
        yield name
    finally:
        stator.uninstall()
        _fresh()


def _fresh():
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch.manual_seed(0)
