"""Charts in a notebook, drawn by the real packages, and without one of them."""

import base64
import json
import re
import sys

import pytest

from pystorm_source.errors import OptionError
from pystorm_source.observe.chart import Chart

CHART = Chart("budget of <b>$5$", "micro-batch", [0, 1, 2], {"budget": [9000, None, 1800], "s": [1.25, 0.9, 1]})


def test_matplotlib_draws_it_with_its_numbers_as_text():
    html = CHART._repr_mimebundle_()["text/html"]
    png = base64.b64decode(re.search(r'src="data:image/png;base64,([^"]+)"', html)[1])
    assert png.startswith(b"\x89PNG") and len(png) < 40_000
    assert html.count("<") == 1 and "&lt;b&gt;$5$" in html and "9,000" in html


def test_altair_draws_it_if_there_is_no_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    html = CHART._repr_mimebundle_()["text/html"]
    spec = json.loads(re.search(r'\}\)\((\{"config".*\}), \{"mode": "vega-lite"\}\)', html)[1])
    assert spec["title"] == "budget of <b>$5$"
    assert [panel["encoding"]["y"]["title"] for panel in spec["vconcat"]] == ["budget", "s"]
    assert [point["y"] for point in spec["vconcat"][0]["data"]["values"]] == [9000, None, 1800]


def test_without_both_it_is_a_table(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "altair", None)
    html = CHART._repr_mimebundle_()["text/html"]
    assert html.startswith("<p>budget of &lt;b&gt;$5$</p><table>") and "1,800" in html


def test_a_console_shows_the_numbers():
    text = "budget of <b>$5$\nmicro-batch  budget  s\n0            9,000   1.25\n1                    0.9\n2"
    assert repr(CHART).startswith(text)


@pytest.mark.parametrize("panels", [{"a": [1]}, {}], ids=["too short", "none"])
def test_a_panel_has_a_value_for_each_point(panels):
    with pytest.raises(OptionError, match="a value for each of the 2 points"):
        Chart("t", "x", [0, 1], panels)
