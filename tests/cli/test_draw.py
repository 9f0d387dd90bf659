"""``pystorm-source draw``."""

import ctypes.util
import io
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest
from typer.testing import CliRunner

from pystorm_source.cli.main import app
from tests.missing import missing

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
    assert (result.exit_code, result.stdout) == (0, f"written: {tmp_path / name}\n")
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
        ([TOPOLOGY, "--output", "t.jpg"], "ends in .svg, .png, .pdf, .mmd, .mermaid, .txt, or name the format by"),
        ([TOPOLOGY, "--output", "/no/such/folder/a.svg"], "Given: '/no/such/folder/a.svg'"),
    ],
)
def test_what_is_wrong_is_said_without_a_traceback(arguments, words):
    result = draw(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ") and words in result.stderr


def words_of(picture):
    """The texts of an SVG, without its title."""
    return ["".join(each.itertext()) for each in ET.fromstring(picture).iter() if each.tag.endswith("}text")]


@pytest.fixture
def cairo():
    """The system's libcairo, which cairosvg draws by. Without it a test fails with CI=true, else it is skipped."""
    if ctypes.util.find_library("cairo") is None:
        missing("libcairo", "libcairo2")


def test_a_pdf_opens_and_has_all_its_words(cairo, tmp_path):
    import pypdf

    assert draw(TOPOLOGY, "--output", str(tmp_path / "a.pdf")).exit_code == 0
    (page,) = pypdf.PdfReader(tmp_path / "a.pdf", strict=True).pages
    text = page.extract_text()
    words = words_of(draw(TOPOLOGY, "--format", "svg").stdout)
    assert len(words) > 9
    assert [word for word in words if word not in text] == []


def test_a_png_has_its_size_and_its_words(cairo, tmp_path):
    from PIL import Image

    assert draw(TOPOLOGY, "--output", str(tmp_path / "a.PNG")).exit_code == 0
    png = (tmp_path / "a.PNG").read_bytes()
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    root = ET.fromstring(draw(TOPOLOGY, "--format", "svg").stdout)
    assert struct.unpack(">II", png[16:24]) == (2 * int(root.get("width")), 2 * int(root.get("height")))
    pixels = Image.open(io.BytesIO(png)).convert("L")
    for text in (each for each in root.iter() if each.tag.endswith("}text")):
        # A word is dark where it begins, and its end is in its box: 7.3 is the width of a character.
        left, base = 2 * float(text.get("x")), 2 * float(text.get("y"))
        word = "".join(text.itertext())
        ink = pixels.crop((int(left), int(base) - 20, int(left + 2 * 7.3 * len(word)), int(base) + 1))
        dark = sum(value < 140 for value in ink.tobytes())
        assert dark > 15 * len(word.replace(" ", "")), word


def test_a_picture_may_be_piped(cairo):
    command = [sys.executable, "-m", "pystorm_source", "draw", TOPOLOGY, "--format", "png"]
    assert subprocess.run(command, capture_output=True, check=True).stdout.startswith(b"\x89PNG")


@pytest.mark.parametrize("suffix", ["png", "pdf"])
@pytest.mark.parametrize(
    ("absent", "words"),
    [
        (ModuleNotFoundError("No module named 'cairosvg'", name="cairosvg"), "pip install 'cairosvg>=2.7'"),
        (OSError("no library called cairo-2 was found"), "apt-get install libcairo2"),
    ],
)
def test_what_is_missing_is_named_with_the_way_to_get_it(tmp_path, monkeypatch, suffix, absent, words):
    class Absent:
        def find_spec(self, name, path=None, target=None):
            if name == "cairosvg":
                raise absent

    monkeypatch.delitem(sys.modules, "cairosvg", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Absent(), *sys.meta_path])
    refused = draw(TOPOLOGY, "--output", str(tmp_path / f"a.{suffix}"))
    assert refused.exit_code == 2 and len(refused.stderr.splitlines()) == 1
    assert words in refused.stderr and f"--format {suffix}" in refused.stderr and "Given: " in refused.stderr
    assert not (tmp_path / f"a.{suffix}").exists()


def test_the_stages_of_a_cluster_are_drawn_with_what_they_cost():
    text = draw(TOPOLOGY, "--scope", "cluster").stdout
    assert "by fields(word), into stage 1" in text
    assert text.rstrip().splitlines()[-1].startswith("stage 1: a row costs about 1 us in Spark's shuffle")
    assert "stage 1:" not in draw(TOPOLOGY).stdout
    assert draw(TOPOLOGY, "--scope", "cluster", "--format", "svg").stdout.startswith("<svg")
