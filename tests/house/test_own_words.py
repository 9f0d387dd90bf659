"""The project speaks of itself alone: of no machine that it was written on and no host that it was fetched from."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Written apart, so that this file does not find itself.
FORBIDDEN = {
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
BINARY = {".png", ".jpg", ".gif", ".gz", ".jar", ".parquet", ".arrow", ".woff2"}


def committed() -> list[Path]:
    """Every file that git knows of, or would take; every file outside of build folders where there is no git."""
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


@pytest.mark.parametrize("kind", FORBIDDEN)
def test_nothing_foreign(kind):
    pattern = re.compile("|".join(FORBIDDEN[kind]))
    found = []
    for path in committed():
        if path.suffix in BINARY or path.suffix == ".so":
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if match := pattern.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {match[0]!r} is {kind}")
    assert not found, "\n".join(found)
