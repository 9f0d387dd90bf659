"""Prints docs/SUPPORT.md, the one table of what the project runs on, of docs/support.yaml and pyproject.toml.

``python docs/support.py --write`` writes it.
"""

import re
import sys
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).resolve().parents[1]
PAGE, DATA = ROOT / "docs/SUPPORT.md", ROOT / "docs/support.yaml"
HOW = {
    "run": "in `.ci/run`",
    "once": "by hand",
    "compiled": "compiled only",
    "workflow": "workflow written, not run yet",
    "read": "documentation only",
    "no": "does not run",
}
HEAD = """# What it runs on

<!-- Printed by `python docs/support.py --write`; change `docs/support.yaml` instead. -->

Look up whether your Python, Spark and platform are covered, and how each was tested. `.ci/run` runs the project's
checks, called *gates*.

| tested | means |
|---|---|
| in `.ci/run` | each `.ci/run` tests it; the last column names the gates |
| by hand | tested once, when this was written; `.ci/run` does not repeat the tests |
| compiled only | the code compiles for it; nothing was run on it |
| workflow written, not run yet | a workflow in `.github/workflows` builds and tests it; this workflow has not run yet |
| documentation only | concluded from its documentation; not tried |
| does not run | known not to work |
"""


class Row(NamedTuple):
    """A line of the page."""

    what: str
    how: str
    note: str = ""
    gates: tuple[str, ...] = ()

    def text(self) -> str:
        """As Markdown."""
        gates = ", ".join(" or ".join(f"`{name}`" for name in gate.split(" or ")) for gate in self.gates)
        return f"| {self.what} | {HOW[self.how]} | {self.note} | {gates} |"


def interpreters() -> list[str]:
    """The versions of Python in pyproject.toml's classifiers."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [each.rsplit(" ", 1)[1] for each in project["classifiers"] if re.search(r"Python :: 3\.\d+$", each)]


def sections() -> list[tuple[str, str, list[Row]]]:
    """Title, note and rows of each section; the row of an interpreter comes once for each."""
    return [
        (part["title"], part.get("note", ""), [row for each in part["rows"] for row in _rows(each)])
        for part in yaml.safe_load(DATA.read_text())
    ]


def _rows(data: dict[str, Any]) -> list[Row]:
    if "{interpreter}" not in data["what"]:
        return [Row(data["what"], data["how"], data.get("note", ""), tuple(data.get("gates", ())))]
    return [
        Row(
            data["what"].format(interpreter=each),
            data["how"],
            data.get("note", ""),
            tuple(gate.format(interpreter=each) for gate in data["gates"]),
        )
        for each in interpreters()
    ]


def page() -> str:
    """The whole page."""
    text = HEAD
    for title, note, rows in sections():
        text += f"\n## {title}\n\n" + (f"{note}\n\n" if note else "")
        text += "| what | tested | note | gates of `.ci/run` |\n|---|---|---|---|\n"
        text += "".join(f"{row.text()}\n" for row in rows)
    return text


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("python docs/support.py --write")
    PAGE.write_text(page(), encoding="utf-8")
