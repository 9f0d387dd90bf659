"""The pages of the documentation, taken apart: code blocks, prose, inline code."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
LESSONS = sorted((ROOT / "docs/lessons").glob("*.md"))
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([^`\n]+)`")


class Block(NamedTuple):
    """A fenced block: its language and text, and the line of the page where the text begins."""

    language: str
    text: str
    line: int


def pages() -> list[Path]:
    """Every page for readers."""
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md")), *LESSONS]


def blocks(page: Path, language: str, modules: bool = False) -> list[Block]:
    """The fenced blocks of that language, in order: those that are typed into cells, or those marked as modules."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(match[1], match[2], text.count("\n", 0, match.start(2)) + 1)
        for match in _FENCE.finditer(text)
        if match[1] == language and text[: match.start()].endswith("<!-- module -->\n") == modules
    ]


def steps(page: Path) -> list[Block]:
    """The fenced blocks of every language, in order."""
    text = page.read_text(encoding="utf-8")
    return [Block(match[1], match[2], text.count("\n", 0, match.start(2)) + 1) for match in _FENCE.finditer(text)]


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def inline_code(page: Path) -> list[str]:
    """What stands between single backticks in its prose."""
    return _INLINE.findall(prose(page))
