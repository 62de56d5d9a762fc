"""Checks that files and functions which the docs name exist.

In the pages of the root and of docs/, a text in backquotes that reads as a path or as a file's name
must be one of the tree's; the end of a path is enough (`decode.c`). One that reads as a name with
an underscore (`trace_call`, `plan_run()`) must be a word of the tree's code, not only of its
comments. Names of other projects are written with their module, as in
`torch.compiler.is_compiling`. Links between pages must lead to a page.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
QUOTED = re.compile(r"(?<!`)`([^`]+)`(?!`)")
FILE = re.compile(r"[\w./-]+\.(c|h|def|py|md|toml|build|txt)")
FOLDER = re.compile(r"(src|python|tests|tools|docs|bench)/[\w/]*")
NAME = re.compile(r"(?P<name>[a-z]+_\w*[a-z0-9])(\(\))?")
LINK = re.compile(r"\]\(([\w./-]+)(#[\w-]*)?\)")


def code_words(files: list[str]) -> set[str]:
    words: set[str] = set()
    for name in files:
        if name.endswith((".c", ".h", ".def", ".py", "meson.build", "Makefile")):
            text = (ROOT / name).read_text()
            comment = r"//.*" if name.endswith((".c", ".h", ".def")) else r"^\s*#.*"
            words.update(re.findall(r"\w+", re.sub(comment, "", text, flags=re.M)))
    return words


def check_page(page: str, files: list[str], words: set[str]) -> Iterator[str]:
    sample = False  # what programs print, and programs
    for number, line in enumerate((ROOT / page).read_text().splitlines(), 1):
        sample ^= line.startswith("```")
        for text in () if sample else QUOTED.findall(line):
            name = NAME.fullmatch(text)
            if FILE.fullmatch(text):
                found = any(f"/{file}".endswith(f"/{text}") for file in files)
            elif FOLDER.fullmatch(text):
                found = (ROOT / text).exists()
            else:
                found = not name or name["name"] in words
            if not found:
                yield f"{page}:{number}: there is no `{text}`"
        for target, _ in LINK.findall(line):
            if not (ROOT / page).parent.joinpath(target).exists():
                yield f"{page}:{number}: the link to {target} leads nowhere"


def main() -> int:
    listed = ("git", "ls-files", "--cached", "--others", "--exclude-standard")
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = [name for name in files.splitlines() if (ROOT / name).exists()]
    words = code_words(names)
    pages = [n for n in names if re.fullmatch(r"([A-Z]+|docs/\w+)\.md", n)]
    problems = [problem for page in pages for problem in check_page(page, names, words)]
    print(*problems, sep="\n", end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
