"""What IPython, and so every notebook, shows of topologies, components and results."""

import base64
import re
import xml.etree.ElementTree as ET

import pytest
from IPython.core.interactiveshell import InteractiveShell

from pystorm_source import Bolt, Grouping, Topology, Tuple
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import run_topology


class Fragile(Bolt):
    outputs = ["n long"]

    def process(self, tup: Tuple) -> None:
        raise ValueError("<script>alert('no')</script>")


class Numbers(Topology):
    numbers = MemorySpout.spec(fields=["n long"], rows=[[1]])
    halves = Fragile.spec(
        name="<b>halves", inputs={numbers: Grouping.fields("n")}, par=2, config={"db.password": "hunter2"}
    )


@pytest.fixture(scope="module")
def shown():
    """What a frontend is given for the last value of a cell: MIME type → text."""
    shell = InteractiveShell.instance()
    yield lambda value: shell.display_formatter.format(value)[0]
    InteractiveShell.clear_instance()


def image_of(html: str) -> str:
    return base64.b64decode(re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', html)[1]).decode()


def test_a_topology_is_its_picture(shown):
    data = shown(Numbers)
    assert data["text/plain"].endswith("Numbers")
    assert image_of(data["text/html"]) == data["image/svg+xml"]
    texts = [each.text for each in ET.fromstring(data["image/svg+xml"]).iter("{http://www.w3.org/2000/svg}text")]
    assert {"Numbers", "numbers", "<b>halves", "Fragile, 2 tasks", "fields(n)", "n long"} <= set(texts)


def test_the_picture_is_an_image_with_a_text_for_those_who_do_not_see_it(shown):
    html = shown(Numbers)["text/html"]
    assert html.startswith("<img ") and html.count("<") == 1
    assert "-&gt; &lt;b&gt;halves by fields(n)" in html


def test_the_base_of_topologies_has_no_picture(shown):
    assert list(shown(Topology)) == ["text/plain"]


def test_a_topology_that_cannot_run_says_why(shown):
    class Wrong(Topology):
        config = {"topology.max.spout.pending": "<many>"}
        numbers = MemorySpout.spec(fields=["n long"], rows=[])

    data = shown(Wrong)
    assert "image/svg+xml" not in data
    assert "topology.max.spout.pending" in data["text/html"] and "&lt;many&gt;" in data["text/html"]


def test_a_spec_is_a_table_without_secrets(shown):
    data = shown(Numbers.halves)
    assert data["text/plain"] == "<Fragile spec '<b>halves'>"
    html = data["text/html"]
    assert "hunter2" not in html and "db.password" in html
    assert "<b>" not in html and "numbers.default by fields(n)" in html and "default: n long" in html


def test_a_result_is_a_table_with_its_errors(shown):
    data = shown(run_topology(Numbers, errors="collect"))
    assert data["text/plain"].startswith("<Result of Numbers: ")
    html = data["text/html"]
    assert "<td>1</td>" in html and "&lt;b&gt;halves" in html
    assert "<script>" not in html and "&lt;script&gt;" in html
