"""src/call/rules.def as data: its lines, and the table of docs/rules.md that counts its rows."""

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FILE = ROOT / "src" / "call" / "rules.def"
PAGE = ROOT / "docs" / "rules.md"
COLUMNS = {
    "PURE": ("owners", "names", "state"),
    "STRUCT": ("owners", "names", "first", "args", "elements", "writes", "state"),
    "ITER": ("owners", "first", "gives"),
    "HANDLED": ("owners", "names", "handler", "takes", "writes", "state"),
    "OPAQUE": ("owners", "names", "why"),
    "REFUSED": ("owners", "names", "reason", "why"),
}
KINDS = ("pure", "struct", "handled", "opaque")
TOKEN = re.compile(r'"[^"]*"|[A-Z]+\([^)]*\)|[A-Za-z_][A-Za-z_0-9]*|[(),|]')


class Line(NamedTuple):
    section: str
    kind: str
    columns: dict[str, str]

    def paths(self) -> list[str]:
        """The rows that the line gives, by the names that _engine.rules() has for them."""
        found = []
        for owner in self.columns["owners"].split():
            for name in self.columns.get("names", "__iter__").split():
                path = owner if name == "()" else f"{owner}.{name}"
                found.append(name if owner == "builtins" else path)
        return found


def _macros(text: str) -> dict[str, str]:
    """Lists that several lines use; one may be made of others before it."""
    joined, found = text.replace("\\\n", " "), dict[str, str]()
    for name, value in re.findall(r"^#define ([A-Z_]+) +([^\n]*)$", joined, re.MULTILINE):
        found[name] = "".join(_arguments(TOKEN.findall(value), found))
    return found


def _arguments(tokens: list[str], macros: dict[str, str]) -> list[str]:
    """The tokens between the brackets of a line: strings and lists joined, flags as they are."""
    columns = [""]
    for token in tokens:
        if token == ",":
            columns.append("")
        else:
            columns[-1] += token[1:-1] if token[0] == '"' else macros.get(token, token)
    return columns


def lines() -> list[Line]:
    text = FILE.read_text()
    macros, found, section = _macros(text), [], ""
    body = re.sub(r"^#.*(\\\n.*)*$", "", text, flags=re.MULTILINE)
    heads = re.compile(r"^// --- (.*) ---$|^([A-Z]+)\(", re.MULTILINE)
    for head in heads.finditer(body):
        if head[1]:
            section = head[1]
            continue
        tokens, at = [], head.end()
        while (token := TOKEN.search(body, at)) and token[0] != ")":
            tokens.append(token[0])
            at = token.end()
        columns = _arguments(tokens, macros)
        assert len(columns) == len(COLUMNS[head[2]]), (head[2], columns)
        found.append(Line(section, head[2], dict(zip(COLUMNS[head[2]], columns))))
    return found


def table(rows: list[tuple]) -> str:
    """Counts of a Python's rows, in Markdown; `rows` as _engine.rules() gives them."""
    sections = {path: line.section for line in lines() for path in line.paths()}
    counts = Counter((sections[row[0]], row[1]) for row in rows)
    writing = Counter(sections[row[0]] for row in rows if row[-2] != "none")
    reading = Counter(sections[row[0]] for row in rows if row[-1])
    names = list(dict.fromkeys(line.section for line in lines()))
    out = [
        "| | " + " | ".join(KINDS) + " | that write | that read state |",
        "|---" + "|--:" * 6 + "|",
    ]
    for name in names:
        cells = [counts[name, kind] for kind in KINDS] + [writing[name], reading[name]]
        out.append(f"| {name} | " + " | ".join(str(n or "") for n in cells) + " |")
    total = [sum(counts[name, kind] for name in names) for kind in KINDS]
    cells = [*total, sum(writing.values()), sum(reading.values())]
    out.append("| all | " + " | ".join(map(str, cells)) + " |")
    return "\n".join(out) + "\n"
