"""Whatever is drawn: boxes and labels lie on the page and not on each other."""

import xml.etree.ElementTree as ET

from hypothesis import given, settings
from hypothesis import strategies as st

from pystorm_source.plan.layered_svg import as_svg
from pystorm_source.plan.picture import Arrow, Box, Picture
from tests.plan.drawn import SVG, areas_of, check_apart
from tests.sizes import sized


@st.composite
def pictures(draw):
    """Boxes in an order in which every one but the spouts has an arrow from an earlier one; arrows back and loops."""
    count = draw(st.integers(1, 9))
    name = st.text(max_size=12)
    boxes, pairs = [], {}
    labels = st.lists(st.text('abc<&>" ', min_size=1, max_size=14), max_size=3).map(tuple)
    for i in range(count):
        above = draw(st.lists(st.integers(0, i - 1), max_size=3)) if i else []
        lines = tuple(draw(st.lists(name, min_size=1, max_size=5)))
        boxes.append(Box(f"b{i}", "bolt" if above else "spout", lines))
        pairs.update({(f"b{j}", f"b{i}"): draw(labels) for j in above})
    reached = {i: {i} for i in range(count)}  # box → those that lead to it
    for source, target in sorted(pairs, key=lambda pair: int(pair[1][1:])):
        reached[int(target[1:])] |= reached[int(source[1:])]
    for i in range(count):
        for j in draw(st.lists(st.sampled_from(sorted(reached[i])), max_size=2)):  # back to what leads here, or a loop
            pairs.setdefault((f"b{i}", f"b{j}"), draw(labels))
    return Picture(draw(name), tuple(boxes), tuple(Arrow(*pair, texts) for pair, texts in pairs.items()))


@settings(max_examples=sized(200), deadline=None)
@given(picture=pictures())
def test_any_picture(picture):
    root = ET.fromstring(as_svg(picture))
    width, height = float(root.get("width")), float(root.get("height"))
    boxes, labels = areas_of(root)
    assert len(boxes) == len(picture.boxes)
    assert len(labels) == sum(len(arrow.labels) for arrow in picture.arrows)
    for left, top, right, bottom in boxes + labels:
        assert 0 <= left <= right <= width and 0 <= top < bottom <= height
    check_apart(boxes + labels)
    heads = [path for path in root.iter(f"{SVG}path") if path.get("class") == "head"]
    assert len(heads) == len(picture.arrows)
