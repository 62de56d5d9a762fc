"""What older versions of torch lack. Tests that compare with stock Dynamo, or that use what torch has
had only since some version, ask here."""

from __future__ import annotations

from typing import Any

import pytest


def version() -> tuple[int, int]:
    import torch

    major, minor = torch.__version__.split(".")[:2]
    return int(major), int(minor)


def since(*wanted: int) -> Any:
    """A mark: skipped with an older torch."""
    text = ".".join(map(str, wanted))
    return pytest.mark.skipif(version() < wanted, reason=f"torch has this since {text}")


def skip_stock_before(engine: str, *wanted: int) -> None:
    """Stock Dynamo did something else before."""
    if engine == "stock" and version() < wanted:
        pytest.skip(f"stock Dynamo does this since {'.'.join(map(str, wanted))}")
