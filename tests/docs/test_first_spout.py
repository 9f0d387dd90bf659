"""docs/FIRST_SPOUT.md as a reader walks it: its commands, its changes, what it says that the screen shows."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

PAGE = ROOT / "docs/FIRST_SPOUT.md"
MOST_WORDS = 500
"""Of the page, its code included. More: it is not read and typed in ten minutes any more."""
STEP = re.compile(r"(?P<commands>(?:^    [^\n]+\n)+)|^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = 'python() { "$PYTHON" "$@"; }; pystorm-source() { "$PYTHON" -m pystorm_source "$@"; }\n'


class Reader:
    """Takes the steps of the page behind its set-up, in a folder that was empty."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.printed = ""

    def walk(self) -> Iterator[tuple[str, str]]:
        """What the last commands printed, and what the page says of it."""
        page = PAGE.read_text()
        for step in STEP.finditer(page, page.index("\n## 1.")):
            if step["commands"]:
                self.run(step["commands"])
            elif step["kind"] == "diff":
                change(step["text"], self.folder)
            else:
                yield self.printed, step["text"]

    def run(self, commands: str) -> None:
        """All but the last line of the output; that one is the folder that the commands end in."""
        env = {**os.environ, "PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            ["bash", "-c", f"{COMMANDS}{commands}pwd"],
            cwd=self.folder,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=200,
        )
        self.printed, _, folder = done.stdout.rstrip("\n").rpartition("\n")
        self.folder = Path(folder)


def change(diff: str, folder: Path) -> None:
    """Replaces the text of each line with `-` by that of the line with `+` behind it."""
    file = folder
    for line in diff.splitlines():
        if line.startswith("--- "):
            file = folder / line[4:]
        elif line.startswith("-"):
            old = line[1:]
        else:
            text = file.read_text()
            assert text.count(old) == 1, f"{file.name} has {old!r} {text.count(old)} times"
            file.write_text(text.replace(old, line[1:]))


@pytest.mark.campaign
@pytest.mark.spark
@pytest.mark.timeout(600)
def test_its_steps_lead_to_each_order_once(tmp_path):
    shown = 0
    for printed, expected in Reader(tmp_path).walk():
        for line in expected.splitlines():
            pattern = ".*".join(re.escape(part) for part in line.split("..."))
            assert re.search(pattern, printed), f"{line!r} is not in:\n{printed[-4000:]}"
        shown += 1
    assert shown == 5


def test_it_is_short():
    """Every word, those of the code too: the reader has ten minutes for all of it."""
    assert len(PAGE.read_text().split()) <= MOST_WORDS


def test_the_readme_leads_to_it_on_its_first_screen():
    before, link, _ = (ROOT / "README.md").read_text().partition("](docs/FIRST_SPOUT.md)")
    assert link and len(before.split()) <= 150
