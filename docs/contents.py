"""The index of the documents, docs/README.md, read: the site's navigation and llms.txt are made from it.

Each heading of the second level is a section; each row of its table says what a page is for, and links the page.
`python docs/contents.py --write` writes llms.txt.
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
INDEX = ROOT / "docs/README.md"
LLMS = ROOT / "llms.txt"

_SECTION = re.compile(r"^## +(.+)$", re.MULTILINE)
_ROW = re.compile(r"^\|([^|\n]*)\|([^|\n]*)\|$", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s]+)[^)]*\)")


class Page(NamedTuple):
    """A page of the index: its path from the top of the repository, its title, and what to read it for."""

    path: str
    title: str
    purpose: str


def title(path: Path) -> str:
    """The first heading of a page; of another file, its name."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return re.search(r"^# +(.+)$", text, re.MULTILINE)[1]
    return text.split("\n", 1)[0] if path.suffix == ".rst" else path.name


def contents() -> dict[str, list[Page]]:
    """The sections in order, each with its pages."""
    _, *parts = _SECTION.split(INDEX.read_text(encoding="utf-8"))
    sections = {}
    for section, text in zip(parts[::2], parts[1::2], strict=True):
        pages = []
        for purpose, target in _ROW.findall(text):
            for _, link in _LINK.findall(target):
                path = (INDEX.parent / link).resolve()
                pages.append(Page(path.relative_to(ROOT).as_posix(), title(path), purpose.strip()))
        sections[section] = pages
    return sections


def llms() -> str:
    """llms.txt: the index for programs that read documents, as Markdown."""
    summary = re.search(r"^# pystorm source\n\n(.*?)\n\n", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    lines = ["# pystorm source", "", *(f"> {line}" for line in summary.splitlines())]
    for section, pages in contents().items():
        lines += ["", f"## {section}", ""]
        lines += [f"- [{page.title}]({page.path}): to {page.purpose}" for page in pages]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("python docs/contents.py --write")
    LLMS.write_text(llms(), encoding="utf-8")
