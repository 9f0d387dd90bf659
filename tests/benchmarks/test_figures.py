"""README.md and docs/PERFORMANCE.md have the figures of benchmarks/results; `draw` has drawn the picture."""

import html
import json
import re
import runpy

import pytest
from typer.testing import CliRunner

from benchmarks.harness import figures
from benchmarks.harness.figures import MARKED, PAGES, with_figures
from pystorm_source.cli.main import app
from tests.docs.pages import ROOT


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_figures_are_those_of_the_records(page):
    text = page.read_text()
    assert MARKED.search(text)
    assert with_figures(text) == text, "run: python -m benchmarks --report"


TABLE = """
<!-- figures -->
| tuples per second | tuples/s | bare Python calls |
|---|---|---|
| constant spout → null bolt | 1.1 million | 10.7 million |

| compiled components | tuples/s | Storm | ratio |
|---|---|---|---|
| constant spout → null bolt | 32 million | 15.7 million | 2.04 |
<!-- /figures -->
"""


def test_of_several_days_the_one_with_the_median_ratio_is_printed_and_the_range(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "RESULTS", tmp_path)
    (tmp_path / "core.jsonl").write_text('{"case": "const-null", "value": 12340000, "floor_ns": 100.0}\n')
    (tmp_path / "compiled.jsonl").write_text(
        "\n".join(
            json.dumps({"case": "null", "value": 1e6 * value, "peer_value": 1e6 * peer, "ratio": value / peer})
            for value, peer in ((31, 10), (24, 10), (18, 5), (16, 4), (40, 20))
        )
    )
    once = with_figures(TABLE)
    assert "| constant spout → null bolt | 12.3 million | 10.0 million |" in once
    row = "| constant spout → null bolt | 31 million | 10.0 million | 3.10 (2.00 to 4.00) |"
    assert row in once, "all of one day: 24 and 10 would be the medians of the columns"
    assert with_figures(once) == once


def test_a_day_without_a_peer_is_left_out_where_others_have_one():
    alone, low, high = ({"value": value, "ratio": ratio} for value, ratio in ((9, None), (5, 0.5), (7, 0.7)))
    assert figures.median_of([alone, high, low]) == low
    without = [{"value": value} for value in (3, 1, 2)]
    assert figures.median_of(without) == {"value": 2}


def test_a_row_that_no_record_is_behind_is_named():
    with pytest.raises(KeyError, match="another row"):
        with_figures(TABLE.replace("constant spout → null bolt", "another row", 1))
    for row, numbers in (("| 1 million | |", 1), ("| 1 million | 2 million | 3 |", 3)):
        text = re.sub(r"\| 1\.1 million .*", row, TABLE, count=1)
        with pytest.raises(
            ValueError, match=rf"'constant spout → null bolt' has {numbers} numbers, and FIGURES names 2"
        ):
            with_figures(text)
    with pytest.raises(LookupError, match=r"core.jsonl has no record of the case 'x'"):
        figures.records("core", "x")


def test_the_readme_has_few():
    (block,) = MARKED.findall((ROOT / "README.md").read_text())
    assert len(block.splitlines()) <= 12


def test_the_picture_of_the_readme_is_drawn_by_the_command(tmp_path):
    name, picture = "examples.sentences:Sentences", "docs/pictures/sentences.svg"
    assert f"]({picture})" in (ROOT / "README.md").read_text()
    drawn = tmp_path / "drawn.svg"
    assert CliRunner().invoke(app, ["draw", name, "--output", str(drawn)]).exit_code == 0
    remedy = f"run: pystorm-source draw {name} --output {picture}"
    assert drawn.read_text() == (ROOT / picture).read_text(), remedy


def test_the_curves_are_drawn_from_the_records(tmp_path):
    drawing = runpy.run_path(str(ROOT / "docs/pictures/draw_scale.py"))
    drawing["drawn"](tmp_path / "drawn.svg")
    remedy = "run: python docs/pictures/draw_scale.py"
    assert (tmp_path / "drawn.svg").read_text() == (ROOT / "docs/pictures/scale.svg").read_text(), remedy


def test_the_recording_is_of_a_demo_that_proved_all():
    """`python docs/pictures/record_demo.py` makes it anew."""
    picture = (ROOT / "docs/pictures/demo.svg").read_text()
    assert "](docs/pictures/demo.svg)" in (ROOT / "README.md").read_text()
    text = html.unescape(re.sub(r"<[^>]+>", "\n", picture)).replace("\xa0", " ")
    assert len(re.findall(r"^proven$", text, re.MULTILINE)) == 3 and "NOT PROVEN" not in text
    assert str(ROOT) not in text


def test_a_recording_leaves_out_what_repeats():
    shown = runpy.run_path(str(ROOT / "docs/pictures/record_demo.py"))["shown"]
    run = ["topology", "Spark starts", *(f"    {n:2}   1.0 s   1.5 s" for n in range(9)), "-> slower", "     9   2.0 s"]
    assert [line.split()[0] for line in shown("\n".join([*run, f". {ROOT}/.venv/bin/activate"]))] == (
        ["Spark", "0", "1", "…", "8", "->", "9", "."]
    )
