"""The lessons that lay down a project, as a reader walks them: commands, changes, and what the screen shows."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import LESSONS, ROOT

STEP = re.compile(r"(?P<commands>(?:^    [^\n]+\n)+)|^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = """
called() { if [ "$BASHPID" = "$$" ]; then "$@"; else exec "$@"; fi; }  # kill %1 meets the program, not its shell
python() { called "$PYTHON" "$@"; }
pystorm-source() { python -m pystorm_source "$@"; }
trap 'kill $(jobs -p) 2> /dev/null' EXIT
"""


class Reader:
    """Takes the steps of a page behind its introduction, in a folder that was empty."""

    def __init__(self, page: Path, folder: Path):
        self.page = page
        self.folder = folder
        self.printed = ""

    def walk(self) -> Iterator[tuple[str, str]]:
        """What the last commands printed, and what the page says of it."""
        page = self.page.read_text()
        for step in STEP.finditer(page, page.index("\n## 1.")):
            if step["commands"]:
                self.run(step["commands"])
            elif step["kind"] == "diff":
                change(step["text"], self.folder)
            elif step["kind"] == "text":
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
@pytest.mark.parametrize(("name", "shows"), [("2_FIRST_SPOUT", 5), ("3_REST_SOURCE", 3)])
def test_its_steps_print_what_it_shows(name, shows, tmp_path):
    (page,) = [lesson for lesson in LESSONS if lesson.stem == name]
    shown = 0
    for printed, expected in Reader(page, tmp_path).walk():
        for line in expected.splitlines():
            pattern = ".*".join(re.escape(part) for part in line.split("..."))
            assert re.search(pattern, printed), f"{line!r} is not in:\n{printed[-4000:]}"
        shown += 1
    assert shown == shows
