"""The words of the project: the field's terms, none of the old house words, nothing of the workplace."""

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]


class Word(NamedTuple):
    """A refused word: its pattern, the term to use instead, and the prefixes of the paths that it is refused in."""

    pattern: str
    instead: str
    places: tuple[str, ...] = ("",)


def _word(alternatives: str) -> str:
    """These words alone, also as a part of an identifier: ``_`` ends a word, a letter does not."""
    return rf"(?<![A-Za-z])(?:{alternatives})(?![A-Za-z])"


CODE = ("cython_core/", "pystorm_source/")
TEXT = (*CODE, "docs/", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md")
CORE = ("cython_core/", "tests/core/", "tests/c/")
JOURNAL = ("pystorm_source/journal/", "tests/journal/")

# Written apart if git would find this file itself; this file is left out anyway. Words with an ordinary meaning are
# refused only at the places where they had another one. "where" for "if" and "when" has no exact pattern: an editor's
# eye must find it.
WORDS = {
    "pace": Word(_word(r"[Uu]?n?[Pp]ac(?:e|ed|er|ers|es|ing)|UNPACED|PACED?"), "rate control, admission, controlled"),
    "evidence": Word(_word("[Ee]vidence"), "rate samples"),
    "unheard": Word(_word("unheard|[Dd]eaf"), "untracked, unreported, silent"),
    "heard": Word(_word("[Hh]eard?|[Hh]ears"), "reported, notified, reached", CODE),
    "told": Word(r"_told\b|\buntold\b|\btold(?=[\[(]|\.\w)|\bdef _?tell\b", "reported, notified, logged", CODE),
    "surprise": Word(_word("[Ss]urprise[sd]?|SURPRISE|[Dd]oubts?|[Ss]tretch(?:es)?"), "innovation, variance", CODE),
    "stranger": Word(_word("[Ss]trangers?|[Rr]eception|[Pp]arcels?|[Cc]rowds?"), "unauthenticated, envelope", CODE),
    "WorldWatch": Word(_word("WorldWatch|world_watch"), "SnapshotReader, SourceState"),
    "slice": Word(r"\bslices?\b(?!\()|" + _word("leftovers?|settle[sd]?|adopt(?:s|ed)?"), "batch, commit", JOURNAL),
    "entangle": Word(_word("[Ee]ntangle[sd]?|entangling"), "link, atomic group"),
    "DRAGGED": Word(_word("DRAGGED|dragged|RESTED|ABANDONED"), "FAILED_WITH_GROUP, RETRY_DUE, EMIT_RAISED"),
    "let_go": Word(r"\blet_go\b", "release", ("cython_core/", "pystorm_source/", "benchmarks/")),
    "give_up": Word(r"\bgive_up\b|\bunjams?\b", "recycle, deadlocks_broken", CORE),
    "tell": Word(r"\b(?:def|cdef|cpdef)\b[^\n(]*\b(?:tell|hear|say|charge|enter)\(", "notify_verdicts, …", CORE),
    "cut": Word(r"\b(?:def|cdef|cpdef)\b[^\n(]*\bcut\(", "closed", ("cython_core/executors/",)),
    "second_verdicts": Word(r"\bsecond_verdicts\b", "duplicate_verdicts"),
    "patience": Word(_word("[Pp]atience|PATIENCE"), "turn_time_limit, time-out", CODE),
    "taps": Word(r"\btaps?\b|\btapped\b|_tapped\b", "captured", CODE),
    "coat": Word(r"\b[Cc]oats? of\b", "Python binding of"),
    "memo": Word(r"\.memo\b|\bmemos\b", "state", TEXT),
    "who": Word(_word("[Ww]ho(?:m|ever)?|(?:[Nn]o|[Ss]ome|[Aa]ny)body"), "the caller, the thread, the component", TEXT),
}

# A path of this list is no text of ours, or it is a record of what was printed.
LEFT_OUT = (
    "LICENSE",
    "benchmarks/results/",
    "pystorm_source/cli/show/prose.txt",
    "pystorm_source/observe/page/vendor/",
    "tests/house/test_words.py",
    "tests/mutations/corpus",
)

# The project speaks of itself alone. Written apart, so that this file does not find itself.
FOREIGN = {
    "a path of the writer's machine": [
        r"/wo" r"rk/(?!dir)",
        r"/tmp/w" r"t\b",
        r"/tmp/ex" r"p\b",
        r"/ro" r"ot/",
        r"/ho" r"me/(?!user|me|you)\w",
    ],
    "a package registry's host": [
        r"pyp" r"i\.org",
        r"python" r"hosted\.org",
        r"registry\.npm" r"js",
        r"repo1?\.maven",
        r"repo\.maven\.apache",
    ],
    "a word of the workplace": [
        r"\bCONTR" r"ACT\.md",
        r"\bworktree" r"\b",
        r"\bissues sh" r"ow\b",
        r"\bissue #?\d",
        r"\bDESI" r"GN\.md",
        r"\bSTY" r"LE\.md",
        r"\bSPA" r"RK\.md",
        r"\bCOMP" r"AT\.md",
    ],
}
BINARY = {".png", ".jpg", ".gif", ".gz", ".jar", ".parquet", ".arrow", ".woff2", ".so"}


def committed() -> list[Path]:
    """Every file that git knows of, or would take; every file outside of build folders if there is no git."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode == 0:
        return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]
    built = {"build", "dist", "__pycache__"}
    return [
        path
        for path in ROOT.rglob("*")
        if path.is_file() and not any(part in built or part.startswith(".venv") for part in path.parts)
    ]


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """Relative path → text; the path itself is its first line, so that file names are checked, too."""
    paths = [path for path in committed() if path.suffix not in BINARY]
    return {
        name: f"{name}\n{path.read_text(errors='replace')}"
        for path in paths
        if (name := path.relative_to(ROOT).as_posix())
    }


def _found(texts: dict[str, str], word: Word) -> dict[str, list[str]]:
    """Path → places of the word."""
    pattern = re.compile(word.pattern)
    found: dict[str, list[str]] = {}
    for name, text in texts.items():
        if not name.startswith(word.places) or name.startswith(LEFT_OUT) or not pattern.search(text):
            continue
        for number, line in enumerate(text.splitlines()):
            if match := pattern.search(line):
                found.setdefault(name, []).append(f"{name}:{number}: {match[0]!r}, say {word.instead}")
    return found


@pytest.mark.parametrize("name", WORDS)
def test_no_house_word(texts, name):
    found = [line for lines in _found(texts, WORDS[name]).values() for line in lines]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("name", "text", "is_refused"),
    [
        ("pace", "self.paced = False", True),
        ("pace", "_pace(at)", True),
        ("pace", 'xml:space="preserve", namespace, spaces, a capacity', False),
        ("who", "for whoever waits", True),
        ("who", "the whole range; whose rows", False),
        ("told", "self._told.add(each)", True),
        ("told", "threshold(told)", False),
        ("heard", "hearts and shears", False),
        ("patience", "PATIENCE_SECONDS", True),
        ("coat", "the coat of ring.h", True),
        ("slice", "buffer.slice(0, 4)", False),
    ],
)
def test_words_are_found_exactly(name, text, is_refused):
    assert bool(re.search(WORDS[name].pattern, text)) == is_refused


@pytest.mark.parametrize("kind", FOREIGN)
def test_nothing_foreign(texts, kind):
    pattern = re.compile("|".join(FOREIGN[kind]))
    found = [
        f"{name}:{number}: {match[0]!r} is {kind}"
        for name, text in texts.items()
        for number, line in enumerate(text.splitlines())
        if (match := pattern.search(line))
    ]
    assert not found, "\n".join(found)
