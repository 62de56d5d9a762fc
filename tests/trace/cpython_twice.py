"""CPython's test modules with every method compiled in tracing mode and run twice, against the same
run plain; and the table of what was traced whole. With a seed, traces also break at random.

    python tests/trace/cpython_twice.py [--all] [--seed=n] [-v] [module ...]
"""

from __future__ import annotations

import collections
import fnmatch
import importlib.util
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def load_compare() -> Any:
    """A copy of tests/cpython/compare.py that starts our worker."""
    path = HERE.parent / "cpython" / "compare.py"
    spec = importlib.util.spec_from_file_location("cpython_compare_twice", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    module.WORKER = HERE / "cpython_worker.py"
    return module


compare = load_compare()
QUICK = """
    test_grammar test_scope test_global test_generators test_genexps test_listcomps test_dictcomps
    test_setcomps test_class test_super test_property test_decorators test_with test_raise
    test_unpack test_unpack_ex test_extcall test_keywordonlyarg test_patma test_compare
    test_augassign test_binop test_unary test_contains test_iter test_enumerate test_range
    test_slice test_tuple test_list test_dict test_set test_bool test_isinstance
    test_userlist test_userdict test_deque test_defaultdict test_ordered_dict test_operator
    test_contextlib test_bisect test_heapq test_string test_copy
""".split()


def modules(every: bool) -> list[str]:
    """Those of the ground floor that this Python has; a few of them unless all are wanted."""
    known = [m.name for m in compare.choose("full")]
    return known if every else [name for name in QUICK if name in known]


def table_folder() -> Path:
    """Emptied by who starts a run."""
    folder = compare.folder() / "tables"
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["STATOR_TRACE_TABLE"] = str(folder)
    return Path(folder)


def run(module: str) -> Any:
    path = table_folder() / f"{module}.jsonl"
    path.unlink(missing_ok=True)
    return compare.compare(module, mode="compiled")


DIFFERENCES = HERE / "differences.txt"


def patterns(module: str) -> list[str]:
    """The tests that this module's rows of differences.txt name."""
    listed = compare.read_differences(DIFFERENCES)
    return [test for name, test in listed if name == module]


def is_named(test: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(test.partition("#")[0], pattern)


def different(report: Any) -> list[Any]:
    """What differs, and has no row in differences.txt."""
    named = patterns(report.module)
    return [found for found in report.different if not any(is_named(found.test, p) for p in named)]


def ran(report: Any, pattern: str) -> bool:
    """Whether a test of that name came to something in both runs; one that is not there at all
    counts, unless the whole module was skipped."""
    tests = [key for key in report.plain.tests if is_named(key, pattern)]
    if not tests:
        return any(test.outcomes == ["pass"] for test in report.plain.tests.values())
    return not all(report.plain.verdict(key).startswith("skip") for key in tests)


def unneeded(report: Any) -> list[str]:
    """Rows of differences.txt whose tests ran, and came out as in plain Python. (A test that only
    differs now and then needs its row.)"""
    seen = [d.test for d in (*report.different, *report.known, *report.flaky)]
    return [
        pattern
        for pattern in patterns(report.module)
        if not any(is_named(test, pattern) for test in seen) and ran(report, pattern)
    ]


def wild_rows() -> list[str]:
    """Rows that name no test: a pattern may stand for modules and classes only."""
    names = (row.split("|")[2].strip() for row in compare.rows_of(DIFFERENCES))
    return [name for name in names if set("*?[") & set(name.rpartition(".")[2])]


def rows(module: str) -> list[dict[str, Any]]:
    """One a method; the last run's where a test was run again."""
    path = table_folder() / f"{module}.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return list({row["test"]: row for row in map(json.loads, lines)}.values())


def summary(table: list[dict[str, Any]], most: int) -> list[str]:
    """How many methods were traced whole, and what dropped the others most often."""
    whole, total = share(table)
    lines = [
        f"{whole} of {total} traced whole ({100 * whole / max(total, 1):.0f}%); dropped because:"
    ]
    return lines + [f"{times:6} {what}" for times, what in reasons(table)[:most]]


def share(table: list[dict[str, Any]]) -> tuple[int, int]:
    """(traced whole, all) of the methods without a class statement."""
    wanted = [row for row in table if not row["class statement"]]
    return sum(row["whole"] for row in wanted), len(wanted)


def reasons(table: list[dict[str, Any]]) -> list[tuple[int, str]]:
    """Why methods without a class statement were dropped, most frequent first."""
    count: collections.Counter[str] = collections.Counter()
    for row in table:
        if not row["class statement"] and row["drops"]:
            what = row["drops"][0].partition(": ")[2]
            count[re.sub(r"0x[0-9a-f]+", "0x", what)[:140]] += 1
    return [(n, what) for what, n in count.most_common()]


def main(arguments: list[str]) -> int:
    for argument in arguments:
        if argument.startswith("--seed="):
            os.environ["STATOR_BREAK_SEED"] = argument.partition("=")[2]
    chosen = [a for a in arguments if not a.startswith("-")] or modules("--all" in arguments)
    table: list[dict[str, Any]] = []
    count = 0
    print(compare.HEADER)
    for name in chosen:
        report = run(name)
        for row in unneeded(report):
            print(f"    differences.txt: no such difference: {row}")
            count += 1
        report.different = different(report)
        compare.tell(report, verbose="-v" in arguments)
        found = rows(name)
        whole, total = share(found)
        print(f"    {whole} of {total} methods without a class statement traced whole", flush=True)
        table += found
        count += len(report.different)
    print("\n".join(summary(table, 60)))
    print(f"{count} tests differ, or no longer do")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
