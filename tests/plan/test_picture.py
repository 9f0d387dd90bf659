"""Pictures of plans: what they show, that no name breaks them, that nothing in the drawing lies on anything else."""

import re
import xml.etree.ElementTree as ET

import pytest

from pystorm_source import Bolt, GlobalStreamId, Grouping, Spout, Stream, Topology
from pystorm_source.plan import compile_plan
from pystorm_source.plan.layered_svg import as_svg
from pystorm_source.plan.picture import Picture, as_mermaid, as_text
from tests.plan.drawn import SVG, areas_of, check_apart

AWFUL = 'a <b> & "c" | `d` ] end --> 日本 \x00'


class Lines(Spout):
    outputs = ["line string", Stream(["code int"], name="codes")]

    def next_tuple(self):
        pass


class Words(Bolt):
    outputs = ["word string", Stream(["reason"], name="errors")]

    def process(self, tup):
        pass


class Wide(Words):
    outputs = [f"field{i} string" for i in range(12)]


class Meshed(Topology):
    """Two spouts, an arrow over two layers, two subscriptions of one pair, a cycle, a loop, an awful name."""

    lines = Lines.spec()
    other = Lines.spec(name=AWFUL)
    split = Words.spec(inputs=[lines], par=3)
    merge = Words.spec(
        inputs={
            lines: Grouping.GLOBAL,
            other: Grouping.ALL,
            split: Grouping.fields("word"),
            split["errors"]: Grouping.NONE,
            GlobalStreamId("count", "errors"): Grouping.SHUFFLE,
        }
    )
    count = Words.spec(inputs={merge: Grouping.SHUFFLE, GlobalStreamId("count"): Grouping.fields("word")}, par=2)
    last = Wide.spec(inputs=[count])


@pytest.fixture
def plan():
    return compile_plan(Meshed)


def drawing(plan):
    return ET.fromstring(as_svg(Picture.of(plan)))


def texts(root, *kinds):
    return [node.text for node in root.iter(f"{SVG}text") if node.get("class") in kinds]


def test_text_names_streams_fields_groupings_and_tasks(plan):
    paragraphs = as_text(plan).split("\n\n")
    assert paragraphs[0] == "topology Meshed, 6 components, 9 tasks"
    assert "bolt split (Words, 3 tasks)\n  default: word string\n    -> merge by fields(word)\n" in "\n".join(
        paragraphs
    )
    (lines,) = [paragraph for paragraph in paragraphs if paragraph.startswith("spout lines")]
    assert lines.splitlines() == [
        "spout lines (Lines)",
        "  default: line string",
        "    -> split by shuffle",
        "    -> merge by global",
        "  codes: code int",
        "    -> rows",
    ]


def test_groupings_name_what_they_choose_by():
    class Chooser:
        def choose_tasks(self, task, values):
            return []

    class Direct(Lines):
        outputs = ["line string", Stream(["code int"], name="codes", direct=True)]

    lines = Direct.spec()
    kinds = {
        "a": {lines: Grouping.custom(Chooser())},
        "b": {lines: Grouping.partial_key("line")},
        "c": {lines["codes"]: Grouping.DIRECT},
        "d": {lines: Grouping.LOCAL_OR_SHUFFLE},
    }
    bolts = {name: Words.spec(inputs=inputs) for name, inputs in kinds.items()}
    plan = compile_plan(type("Kinds", (Topology,), {"lines": lines, **bolts}))
    (paragraph,) = [text for text in as_text(plan).split("\n\n") if text.startswith("spout lines")]
    assert paragraph.splitlines()[1:] == [
        "  default: line string",
        "    -> a by custom(Chooser)",
        "    -> b by partial_key(line)",
        "    -> d by local_or_shuffle",
        "  codes (direct): code int",
        "    -> c by direct",
    ]
    assert "codes direct" in texts(drawing(plan), "label")


def test_every_form_shows_every_component_and_subscription(plan):
    root = drawing(plan)
    assert texts(root, "name").count("rows") == len(plan.open_streams)
    assert {component.name for component in plan.components} - {AWFUL} < set(texts(root, "name"))
    subscriptions = ["shuffle"] * 3 + ["fields(word)"] * 2 + ["global", "all", "errors none", "errors shuffle"]
    assert sorted(texts(root, "label")) == sorted([*subscriptions, "codes", "codes", "errors"])
    mermaid = as_mermaid(plan)
    assert mermaid.count("-->") == len({(edge.producer, edge.consumer) for edge in plan.edges}) + len(plan.open_streams)
    assert "Words, 3 tasks" in texts(root, "more") and "Words, 3 tasks" in mermaid


def test_many_fields_are_cut_in_a_box(plan):
    shown = texts(drawing(plan), "more")
    assert "field6 string" in shown and "field7 string" not in shown and "…" in shown


def test_no_name_is_markup(plan):
    assert AWFUL.replace("\x00", "\ufffd") in texts(drawing(plan), "name")
    box = re.search(r'^    c\d+\(\["(.*)<br/>Lines"\]\)$', as_mermaid(plan), re.MULTILINE | re.ASCII)
    label = re.findall(r'^    c\d+\(\["(.*)"\]\)$', as_mermaid(plan), re.MULTILINE)
    assert box and len(label) == 2
    assert not any(set(text.replace("<br/>", "")) & set('"<>|`[]{}\x00') for text in label)
    decoded = re.sub(r"#(\d+);", lambda found: chr(int(found[1])), label[1].partition("<br/>")[0])
    assert decoded == AWFUL


def test_boxes_and_labels_do_not_lie_on_each_other(plan):
    root = drawing(plan)
    width, height = float(root.get("width")), float(root.get("height"))
    boxes, labels = areas_of(root)
    areas = boxes + labels
    assert len(areas) == 6 + len(plan.open_streams) + 12
    for left, top, right, bottom in areas:
        assert 0 <= left < right <= width and 0 <= top < bottom <= height
    check_apart(areas)


def test_arrows_have_one_head_each_and_end_where_a_box_begins(plan):
    root = drawing(plan)
    heads = [path for path in root.iter(f"{SVG}path") if path.get("class") == "head"]
    assert len(heads) == len(Picture.of(plan).arrows)
    sides = {
        round(edge, 1)
        for rect in root.iter(f"{SVG}rect")
        if rect.get("class") != "page"
        for edge in (float(rect.get("x")), float(rect.get("x")) + float(rect.get("width")))
    }
    at = [float(head.get("d").split()[1]) for head in heads if "l -4" not in head.get("d")]
    assert len(at) == len(heads) - 1  # the loop's points up
    assert all(any(abs(x - side) <= 0.2 for side in sides) for x in at)


def test_processes_are_told_in_every_form():
    class Parsed(Topology):
        lines = Lines.spec()
        parse = Words.spec(inputs=[lines], par=4, processes=2)
        one = Words.spec(inputs=[parse], processes=1)

    plan = compile_plan(Parsed)
    for text in (as_text(plan), as_mermaid(plan), as_svg(Picture.of(plan))):
        assert "Words, 4 tasks in 2 processes" in text
        assert "Words, 1 task in 1 process" in text
        assert "in 0 process" not in text
