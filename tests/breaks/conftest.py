"""Makes the modules of this folder, and the harness of tests/diff, importable by name."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "diff")]
