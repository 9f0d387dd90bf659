"""`python docs/pictures/record_demo.py` runs `pystorm-source demo`, and draws demo.svg of what it prints."""

import io
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.text import Text

PICTURE = Path(__file__).with_name("demo.svg")
ROOT = Path(__file__).resolve().parents[2]
WIDTH = 114
FIRST = 2
"""Micro-batches of an act that are shown, besides its last one. More: the picture is longer than a page."""

_MICRO_BATCH = re.compile(r" +\d+ +[\d.]+ s ")
_STYLES = (
    (r"^-> .*", "bold cyan"),
    (r"^proven\b", "bold green"),
    (r"^NOT PROVEN\b", "bold red"),
    (r"^micro-batch.*", "dim"),
)
# rich's own frame asks another host for a font: a page that is read offline, or strictly, would not get it.
_FRAME = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font: {char_height}px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace }}
.{unique_id}-title {{ font: bold 18px sans-serif }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g>
</g>
</svg>
"""


def shown(text: str) -> Iterator[str]:
    """The lines of a run without the drawing at its top; of many micro-batches in a row the first ones and the last."""
    lines = text[text.index("Spark starts") :].replace(f"{ROOT}/", "").splitlines()
    for rows, group in groupby(lines, lambda line: bool(_MICRO_BATCH.match(line))):
        act = list(group)
        if rows and len(act) > FIRST + 2:
            yield from (*act[:FIRST], f"{'…':>11}", act[-1])
        else:
            yield from act


def picture(text: str) -> str:
    """The SVG of a run that printed this."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text("$ make demo", "bold"))
    for line in shown(text):
        styled = Text(line)
        for pattern, style in _STYLES:
            styled.highlight_regex(pattern, style)
        console.print(styled, soft_wrap=True)
    return console.export_svg(title="make demo", code_format=_FRAME, unique_id="demo")


if __name__ == "__main__":
    command = [sys.executable, "-m", "pystorm_source", "demo"]
    ended = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if ended.returncode != 0:
        sys.exit(f"the demo ended with {ended.returncode}: the picture stays as it was\n{ended.stdout}")
    PICTURE.write_text(picture(ended.stdout), encoding="utf-8")
