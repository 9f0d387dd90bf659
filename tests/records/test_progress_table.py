"""A record in a few lines, for terminals and notebooks."""

from html.parser import HTMLParser

import msgspec
import pytest

from pystorm_source.records.counts import Counts
from pystorm_source.records.progress_table import MOST_COMPONENTS, as_html, as_text, headline, standing
from pystorm_source.records.record import Bottleneck, PystormProgress
from tests.observe.page.runs import MARKUP, orders, renamed
from tests.records.samples import progress


def test_the_headline_names_the_bottleneck_and_what_to_change():
    assert headline(orders(119)).startswith("price is the bottleneck, 97% busy: make process() cheaper, or")


@pytest.mark.parametrize(
    ("bottleneck", "line"),
    [
        (
            Bottleneck(why="waits for Spark", capacity=0.7, advice="look"),
            "the query waits for Spark, 70% of the time: look",
        ),
        (Bottleneck(component="a", why="waits for upstream"), "a is the bottleneck, it waits for its source"),
        (Bottleneck(component="a", why="waits for downstream"), "a is the bottleneck, it waits for what it calls"),
    ],
    ids=lambda each: getattr(each, "why", ""),
)
def test_what_waits_is_named(bottleneck, line):
    record = orders(119)
    waits = msgspec.structs.replace(record.topology, bottleneck=bottleneck)
    assert headline(msgspec.structs.replace(record, topology=waits)) == line


def test_without_a_bottleneck_it_says_what_limits_a_micro_batch():
    assert headline(orders(3)) == "no component holds the query back"
    limited = msgspec.structs.replace(orders(3), reason="target_duration")
    assert headline(limited).endswith("what a micro-batch reads is limited: target duration")
    assert headline(PystormProgress()) == "the components have not been counted yet"


def test_the_state_of_admission_is_a_sentence():
    record = PystormProgress(
        batch_id=7, seconds=1.25, rows=2500, backlog=40_000, pressure=3.5, target=1.0, limit=9000, reason="rate"
    )
    assert standing(record) == (
        "micro-batch 7: 1.25 s of 1 s, 2,500 rows, 2,000 a second, backlog 40,000, pressure 3.50, limit 9,000 (rate)"
    )
    assert standing(PystormProgress(batch_id=0)) == "micro-batch 0: 0 s, 0 rows, backlog 0"


def test_the_busiest_components_come_first():
    lines = as_text(orders(119)).splitlines()
    assert lines[2].split()[:3] == ["component", "tasks", "busy"]
    assert lines[3].split()[:3] == ["price", "4", "97%"] and len(lines) == 10


def test_a_large_topology_is_cut():
    assert len(as_text(progress(components=50, slow="bolt7")).splitlines()) == MOST_COMPONENTS + 4
    assert as_text(progress(components=50)).splitlines()[-1] == "… 20 more"


def test_a_name_cannot_command_the_terminal():
    record = renamed(orders(119), ["\x1b[2J\x07cleared", *MARKUP[1:]])
    assert as_text(record).replace("\n", "").isprintable()


def test_names_with_markup_are_text_in_a_notebook():
    seen: list[str] = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag, attrs):
            seen.append(tag)
            assert {name for name, _ in attrs} <= {"style"}

    Tags().feed(as_html(renamed(progress(components=8), MARKUP)))
    assert set(seen) == {"p", "table", "thead", "tbody", "tr", "th", "td"}


def test_an_output_is_small():
    assert len(as_html(progress(components=50, partitions=1000))) < 13_000


def test_a_notebook_shows_a_record_as_its_table():
    assert orders(119)._repr_html_() == as_html(orders(119))


def test_a_request_is_told_from_a_call_if_there_is_one():
    record = orders(119)
    first, *others = record.topology.components
    asked = msgspec.structs.replace(first, batch=Counts(executed=9, ended_requests=10, request_seconds=1.2))
    waits = msgspec.structs.replace(record.topology, components=(asked, *others))
    assert "a request" not in as_text(record)
    text = as_text(msgspec.structs.replace(record, topology=waits))
    assert "a request" in text and text.count("120 ms") == 1
