"""``pystorm-source draw``."""

import xml.etree.ElementTree as ET

import pytest
from typer.testing import CliRunner

from pystorm_source.cli.main import app

TOPOLOGY = "pystorm_source.cli.word_count:WordCount"


def draw(*arguments):
    return CliRunner().invoke(app, ["draw", *arguments])


def test_text_goes_to_the_terminal():
    result = draw(TOPOLOGY)
    assert result.exit_code == 0
    assert result.stdout.startswith("topology WordCount, 4 components, 5 tasks\n\nspout lines (FilesSpout)\n")


@pytest.mark.parametrize(
    ("name", "begins"), [("a.svg", "<svg"), ("a.mmd", "---\ntitle"), ("a.txt", "topology"), ("a", "topology")]
)
def test_the_name_of_the_file_says_the_form(tmp_path, name, begins):
    result = draw(TOPOLOGY, "--output", str(tmp_path / name))
    assert (result.exit_code, result.stdout) == (0, "")
    assert (tmp_path / name).read_text().startswith(begins)


def test_a_given_form_wins(tmp_path):
    draw(TOPOLOGY, "--format", "svg", "--output", str(tmp_path / "a.txt"))
    assert ET.parse(tmp_path / "a.txt").getroot().tag.endswith("svg")


def test_a_module_of_the_working_folder_is_found(tmp_path, monkeypatch):
    (tmp_path / "drawn_here.py").write_text("from pystorm_source.cli.word_count import WordCount\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [path for path in __import__("sys").path if path not in ("", str(tmp_path))])
    assert draw("drawn_here:WordCount").exit_code == 0


def test_the_environment_picks_a_par(tmp_path, monkeypatch):
    (tmp_path / "drawn_by_environment.py").write_text(
        "from pystorm_source.cli.word_count import *\n"
        "class Wide(WordCount):\n"
        "    counts = CountBolt.spec(inputs=[WordCount.words], par={'small': 2, 'large': 64})\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    assert "bolt counts (CountBolt, 64 tasks)" in draw("drawn_by_environment:Wide", "-e", "large").stdout
    refused = draw("drawn_by_environment:Wide")
    assert refused.exit_code == 2 and "environment" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["word_count"], "Given: 'word_count'"),
        (["no_such_module:Words"], "cannot be imported"),
        (["pystorm_source.cli.word_count:Words"], "it has: WordCount"),
        ([TOPOLOGY, "--output", "t.png"], "ends in .svg, .mmd, .mermaid, .txt, or name the format by --format"),
        ([TOPOLOGY, "--output", "/no/such/folder/a.svg"], "Given: '/no/such/folder/a.svg'"),
    ],
)
def test_what_is_wrong_is_said_without_a_traceback(arguments, words):
    result = draw(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ") and words in result.stderr
