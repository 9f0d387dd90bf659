"""Plain English: few sentences of docstrings and documents have a turn of phrase that native writers do not use.

A look-out, not a verdict: a marked sentence may be right, and is rephrased all the same. Projects whose prose reads
well have marks in one sentence of a hundred.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MOST = 0.015
"""Share of sentences. Less: a false hit here and there fails the test. More: whole pages may read as translated."""

MARKS = {
    "that of, those of": r"\b(?:that|those) of\b",
    "a sentence that begins with Of, That, Those": r"^(?:of|(?:that|those)(?! (?:is|are|means)\b))\b",
    "alone, for only": r"(?<!let )(?<!leave )(?<!runs )(?<!stand )\b\w+ alone\b",
    "none, as a noun": r"\b(?:has|have|is|are|was|were|of|with|or|to) none\b",
    "as, for because": r", as (?:an?|each|its?|no|spark|the|they)\b",
    "for, for because": r", for (?:each|it|no|spark|the|they|what) (?:\w+ ){0,3}"
    r"(?:is|are|has|have|does|would|will|may|can|gives?|needs?|goes|comes?)\b",
    "is to, for must": r"\b(?:is|are|was|were) to (?!be found)[a-z]",
    "of its own": r"\bof (?:its|his|our|their|your) own\b|\bof (?:ours|theirs|yours)\b",
    "stands, for is": r"\bstands?\b(?! (?:for|out|alone))",
    "else, for otherwise": r"(?:^|[;,.] )else\b(?! if)",
    "by which, of which": r"\b(?:by|from|in|of|to|with) which\b",
    "anew, meanwhile": r"\b(?:anew|for ever|hereby|meanwhile|thereby|therein)\b",
    "What … is, as a subject": r"(?:^|[.;:] )what [a-z]+ (?:is|are|was|has|goes|comes|gets|does)\b",
    "becomes of": r"\bbecomes? of\b",
    "let it be": r"\blet (?:it|them|an? \w+|the \w+) (?:be|come|go|stand)\b",
    "so that no": r"\bso that (?:nothing|none|no)\b",
    "reckon": r"\breckon\b",
}
MARK = re.compile("|".join(f"(?:{each})" for each in MARKS.values()), re.IGNORECASE | re.MULTILINE)
END_OF_SENTENCE = re.compile(r"(?<=[.!?:])\s+(?=[A-Z`*\[(])|\n\s*\n|\n\s*[-*|] ")
CODE = re.compile(r"`[^`]*`")


def sentences(text: str) -> Iterator[str]:
    """Those with three words or more; code in them is one word."""
    for each in END_OF_SENTENCE.split(CODE.sub("`x`", text)):
        sentence = " ".join(each.split())
        if sentence.count(" ") >= 2:
            yield sentence


def docstrings(path: Path) -> Iterator[str]:
    """Up to their examples."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield (ast.get_docstring(node) or "").partition(">>>")[0]


def prose_of(path: Path) -> str:
    """A document without its code."""
    text = re.sub(r"^\s*```.*?^\s*```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"^    .*$", "", text, flags=re.MULTILINE)


def marked(texts: Iterator[str]) -> tuple[list[str], int]:
    """The marked sentences, and how many sentences there are."""
    found = [sentence for text in texts for sentence in sentences(text)]
    return [sentence for sentence in found if MARK.search(sentence)], len(found)


@pytest.mark.parametrize("room", ["cython_core", "pystorm_source"])
def test_docstrings(room):
    paths = sorted((ROOT / room).rglob("*.py"))
    check(text for path in paths for text in docstrings(path))


@pytest.mark.parametrize("pages", ["README.md", "CONTRIBUTING.md", "benchmarks/README.md", "docs/**/*.md"])
def test_documents(pages):
    check(prose_of(path) for path in sorted(ROOT.glob(pages)))


def check(texts):
    found, count = marked(texts)
    assert count > 20
    assert len(found) <= MOST * count, f"{len(found)} of {count} sentences:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("sentence", "is_marked"),
    [
        ("Its limits are those of the service.", True),
        ("Has the limits that the service has.", False),
        ("Waits, as the queue is full now.", True),
        ("Waits because the queue is full now.", False),
        ("A task of its own reads `those of the other` first.", True),
        ("Reads `those of the other` first.", False),
    ],
)
def test_a_mark_is_found_outside_of_code(sentence, is_marked):
    assert marked(iter([sentence])) == ([sentence.replace("those of the other", "x")] if is_marked else [], 1)
