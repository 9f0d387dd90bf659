"""The document has everything in it, lets nothing else run, and is small."""

import base64
import hashlib
import re
import time
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from pystorm_source.observe.page import document as module
from pystorm_source.observe.page.document import document, framed, policy
from pystorm_source.observe.page.view import View
from pystorm_source.records.record_file import last_lines
from tests.observe.page.runs import MARKUP, orders, renamed, write_run
from tests.records.samples import progress

ROOT = Path(__file__).resolve().parents[3]
VENDORED = ROOT / "pystorm_source/observe/page/vendor"


def test_the_name_of_a_file_that_is_no_utf8_can_be_shown():
    view = View(title="Orders\udcff", runs={"1": "Orders\udcff"})
    assert "<title>Orders\ufffd</title>" in document(view).encode().decode()
    assert 'title="Orders\ufffd"' in framed(view, "1", 100).encode().decode()


class Parsed(HTMLParser):
    """The elements of a document, and what its scripts and styles hold."""

    def __init__(self, text: str):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inner: list[tuple[str, str]] = []
        self.is_open = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.inner.append((tag, ""))
        self.is_open = True

    def handle_endtag(self, tag):
        self.is_open = False

    def handle_data(self, data):
        if self.inner and self.is_open:
            tag, text = self.inner[-1]
            self.inner[-1] = tag, text + data


def test_nothing_is_loaded_from_elsewhere():
    for tag, attributes in Parsed(document(View.of([orders(119)]))).elements:
        for name in ("src", "href", "action", "data", "poster", "style", "onload", "onclick"):
            assert (attributes.get(name) or "#").startswith("#"), (tag, attributes)


def test_the_policy_names_each_script_and_style_by_its_hash():
    text = document(View.of([orders(1)]))
    sources = dict(each.strip().split(" ", 1) for each in policy(connects=False).split(";"))
    assert sources["default-src"] == sources["connect-src"] == sources["base-uri"] == "'none'"
    assert "unsafe" not in policy(connects=True)
    for tag, inner in Parsed(text).inner:
        if (tag == "script" and '"last"' not in inner) or tag == "style":
            digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in sources[f"{tag}-src"]
    (meta,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert unescape(meta) == policy(connects=False)


def test_names_with_markup_make_no_elements():
    plain, marked = document(View.of([orders(119)])), document(View.of([renamed(orders(119), MARKUP)]))
    assert [tag for tag, _ in Parsed(plain).elements] == [tag for tag, _ in Parsed(marked).elements]


def test_its_data_is_the_view():
    view = View.of([renamed(orders(119), MARKUP)])
    (data,) = [inner for tag, inner in Parsed(document(view)).inner if tag == "script" and '"last"' in inner]
    assert msgspec.json.decode(data, type=View) == view


def test_a_frame_holds_the_whole_document():
    view = View.of([renamed(orders(119), MARKUP)])
    ((tag, attributes),) = Parsed(framed(view, "key", 900)).elements
    assert tag == "iframe" and attributes["srcdoc"] == document(view, key="key")


def test_without_data_it_is_less_than_300_kib():
    assert len(document(View())) < 200 * 1024


@pytest.mark.parametrize("name", [*module.SCRIPTS, *module.OURS])
def test_scripts_are_kept_inside_their_element(name):
    text = (module.FOLDER / name).read_text()
    assert "</script" not in text.lower() and "<!--" not in text


def test_vendored_files_are_those_of_the_packages():
    """By the digests that ``.ci/vendor_page.py`` has written when it took them over."""
    lines = (ROOT / "requirements/page.sha256").read_text().splitlines()
    listed = {line.split()[1]: line.split()[0] for line in lines if not line.startswith("#")}
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in VENDORED.iterdir()}
    assert found == listed
    licences = (VENDORED / "LICENSES.txt").read_text()
    assert licences.count("Permission is hereby granted, free of charge") == 2
    assert all(name in licences for name in found if name != "LICENSES.txt")


@pytest.mark.quiet
def test_a_refresh_of_50_components_and_1000_partitions_takes_less_than_50_ms_of_the_driver(tmp_path):
    """What a notebook's page costs when a micro-batch has ended: its record is read, the page is made anew."""
    records = [progress(batch, components=50, partitions=1000) for batch in range(600)]
    path = write_run(tmp_path / "Sample-1.jsonl", records, ended=False)
    spent = []
    for _ in range(5):
        began = time.process_time()
        newest = last_lines(path).records[-1]
        framed(View.of([*records, newest]), "key", 900)
        spent.append(time.process_time() - began)
    print(f"a refresh: {min(spent) * 1000:.1f} ms of processor time")
    assert min(spent) < 0.05
