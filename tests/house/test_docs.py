"""Documents point at what exists: relative links, anchors, the make targets and the options that they name."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/**/*.md")])
LINK = re.compile(r"(?<!\!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")


def without_code(text: str) -> str:
    """The text without fenced and inline code, where brackets mean something else."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))


def anchors(text: str) -> set[str]:
    """The anchors that a reader of Markdown makes of the headings."""
    titles = re.findall(r"^#+\s+(.*)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links(document):
    broken = []
    for match in LINK.finditer(without_code(document.read_text())):
        target, _, anchor = (match[1] or match[2]).partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        path = (
            document
            if not target
            else (ROOT / target.lstrip("/") if target.startswith("/") else document.parent / target)
        )
        if not path.exists():
            broken.append(f"{target}: no such file")
        elif anchor and path.suffix == ".md" and anchor not in anchors(path.read_text()):
            broken.append(f"{target}#{anchor}: no such heading")
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_make_targets(document):
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"`make ([a-z-]+)[^`]*`|^\s*\$? ?make ([a-z-]+)", document.read_text(), re.MULTILINE))
    assert {first or second for first, second in named} <= targets
