"""`make bench`: the table of figures next to stock Dynamo's, build/bench.json, and docs/bench.svg.

Each group of figures is a script of its own, run in a process of its own. Without arguments the
groups `trace`, `warm`, `start` and `memory` are measured; `inductor` and `engine` only when named.
Groups that are not measured keep their figures in build/bench.json. `--draw`: only table and chart.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

import chart
import figures

FOLDER = pathlib.Path(__file__).resolve().parent
LIGHT = ("trace", "warm", "start", "memory")
HEAVY = ("inductor", "engine")


def measure(group):
    """What the script of the group has written. The script prints its own tables."""
    print(f"-- {group} --", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        written = pathlib.Path(folder, "found.json")
        command = [sys.executable, str(FOLDER / f"{group}.py"), "--json", str(written)]
        quiet = os.environ | {"TRANSFORMERS_VERBOSITY": "error"}
        subprocess.run(command, check=True, env=quiet)
        found = json.loads(written.read_text())
    print()
    return {"date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}", **found}


def load(path):
    return json.loads(path.read_text()) if path.exists() else {}


def main():
    parser = argparse.ArgumentParser(description="Stator's figures next to stock Dynamo's.")
    parser.add_argument("groups", nargs="*", choices=[[], *LIGHT, *HEAVY])
    parser.add_argument("--draw", action="store_true", help="table and chart of what was measured")
    parser.add_argument("--json", type=pathlib.Path, default=pathlib.Path("build/bench.json"))
    parser.add_argument("--svg", type=pathlib.Path, default=FOLDER.parent / "docs/bench.svg")
    options = parser.parse_args()
    report = load(options.json)
    report |= {"python": platform.python_version(), "machine": platform.machine()}
    for group in () if options.draw else options.groups or LIGHT:
        report[group] = measure(group)
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    print(figures.table(report))
    if "trace" in report and "warm" in report:
        options.svg.write_text(chart.draw(report))
        print(f"\nfigures: {options.json}, chart: {options.svg}")


if __name__ == "__main__":
    sys.exit(main())
