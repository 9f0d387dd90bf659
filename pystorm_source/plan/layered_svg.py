"""A picture as SVG: layers from left to right, with as few crossings as a barycentre order leaves.

    layer 0   labels, curves   layer 1   labels, curves   layer 2
    ┌───────┐ shuffle ────╮                               ┌──────┐
    │ spout ├─────────────┼───▶┌──────┐ ─────────────────▶│ rows │
    │       ├ all ──╮     ╰───▶│ bolt │                   └──────┘
    └───────┘       ╰──────────┈┈┈┈┈┈┈┈ a lane past the layer, on to a later one

A box's layer is the longest path that leads to it. An arrow over several layers has a lane through each between; one
that goes back (a cycle) is laid out like one that goes on, with its head at the left. Arrows leave a box at different
heights, straight for as long as the longest label, so labels never overlap. Widths assume a fixed-width font.
"""

import re
import unicodedata
from collections.abc import Callable
from itertools import pairwise
from statistics import fmean
from xml.sax.saxutils import escape

from pystorm_source.plan.picture import Box, Picture

CHAR, LINE, PAD, BETWEEN, CURVE, HEAD = 7.3, 17.0, 10.0, 24.0, 60.0, 8.0
SWEEPS = 12
FONTS = 'ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace'
STYLE = f"text {{ font: 12px {FONTS}; fill: #1c2733 }}"
STYLE += """
.name { font-weight: bold } .more, .label { fill: #51606e } .title { font-weight: bold; font-size: 14px }
.spout { fill: #d8ecff; stroke: #2b76b9 } .bolt { fill: #fff3d6; stroke: #b07d12 }
.rows { fill: #e3f4e1; stroke: #3d8b40 } .page { fill: #ffffff } .head { fill: #51606e }
.arrow { fill: none; stroke: #51606e; stroke-width: 1.3 }
"""


class Node:
    """A box, or the lane of an arrow past a layer (``box`` is None). ``y`` is its middle, ``below`` room for a loop."""

    def __init__(self, layer: int, box: Box | None = None, loop: tuple[str, ...] | None = None):
        self.layer = layer
        self.box = box
        self.loop = loop
        self.width = PAD * 2 + CHAR * max(map(_columns, (*box.lines, *(loop or ())))) if box else 0.0
        self.height = PAD + LINE * len(box.lines) if box else 0.0
        self.below = 0.0 if loop is None else LINE * (len(loop) + 1.5)
        self.x = self.y = 0.0
        self.left: list[Link] = []
        self.right: list[Link] = []

    def fit_ports(self) -> None:
        """Makes the box as high as the arrows at its sides need."""
        most = max(sum(link.height for link in self.right), LINE * len(self.left))
        self.height = max(self.height, most + (PAD if self.box else 0.0))

    def port(self, link: "Link") -> float:
        """The height at which a link leaves or arrives."""
        side = self.right if link.source is self else self.left
        at, heights = 0.0, []
        for each in side:
            at += each.height if link.source is self else LINE
            heights.append(at)
        return self.y + heights[side.index(link)] - (heights[0] + heights[-1]) / 2


class Link:
    """A piece of an arrow, from a node to one in the next layer. ``head`` is at its left (<), right (>) or nowhere."""

    def __init__(self, source: Node, target: Node, labels: tuple[str, ...], head: str):
        self.source, self.target, self.labels, self.head = source, target, labels, head
        self.height = LINE * max(1, len(labels)) + 2
        self.width = max((CHAR * _columns(label) for label in labels), default=0.0) + (HEAD if head == "<" else 0.0)
        source.right.append(self)
        target.left.append(self)


def as_svg(picture: Picture) -> str:
    """A complete SVG document."""
    layers = _layers(picture)
    for _ in range(SWEEPS):
        _order(layers[1:], lambda node: [link.source for link in node.left], layers)
        _order(layers[-2::-1], lambda node: [link.target for link in node.right], layers)
    for node in (node for layer in layers for node in layer):
        node.right.sort(key=lambda link: layers[link.target.layer].index(link.target))
        node.left.sort(key=lambda link: layers[link.source.layer].index(link.source))
        node.fit_ports()
    _place(layers)
    return _document(picture.title, layers)


def _layers(picture: Picture) -> list[list[Node]]:
    rank = {box.key: i for i, box in enumerate(picture.boxes)}
    loops = {arrow.source: arrow.labels for arrow in picture.arrows if arrow.source == arrow.target}
    onward = [arrow for arrow in picture.arrows if rank[arrow.source] < rank[arrow.target]]
    depth = dict.fromkeys(rank, 0)
    for arrow in sorted(onward, key=lambda arrow: rank[arrow.source]):
        depth[arrow.target] = max(depth[arrow.target], depth[arrow.source] + 1)
    nodes = {box.key: Node(depth[box.key], box, loops.get(box.key)) for box in picture.boxes}
    layers: list[list[Node]] = [[] for _ in range(max(depth.values()) + 1)]
    for node in nodes.values():
        layers[node.layer].append(node)
    for arrow in picture.arrows:
        if arrow.source == arrow.target:
            continue
        back = rank[arrow.source] > rank[arrow.target]  # from a box to one that leads to it
        first, last = (nodes[arrow.target], nodes[arrow.source]) if back else (nodes[arrow.source], nodes[arrow.target])
        lanes = [Node(layer) for layer in range(first.layer + 1, last.layer)]
        for lane in lanes:
            layers[lane.layer].append(lane)
        for left, right in pairwise([first, *lanes, last]):
            head = "<" if back and left is first else ">" if not back and right is last else ""
            Link(left, right, arrow.labels if left is first else (), head)
    return layers


def _order(some: list[list[Node]], neighbours: Callable[[Node], list[Node]], layers: list[list[Node]]) -> None:
    for layer in some:
        middle = {
            node: fmean([layers[near.layer].index(near) for near in neighbours(node)] or [layer.index(node)])
            for node in layer
        }
        layer.sort(key=middle.__getitem__)


def _place(layers: list[list[Node]]) -> None:
    x = PAD
    for layer in layers:
        width = max(node.width for node in layer)
        for node in layer:
            node.x = x + (width - node.width) / 2
        x += width + max((link.width for node in layer for link in node.right), default=0.0) + PAD + CURVE
        _stack(layer, [0.0] * len(layer))
    for _ in range(SWEEPS):
        for layer in [*layers, *reversed(layers)]:
            near = [[link.source.y for link in node.left] + [link.target.y for link in node.right] for node in layer]
            _stack(layer, [fmean(ys or [node.y]) for ys, node in zip(near, layer, strict=True)])
    top = min(node.y - node.height / 2 for layer in layers for node in layer)
    for node in (node for layer in layers for node in layer):
        node.y += PAD * 2 + LINE * 2 - top


def _stack(layer: list[Node], wished: list[float]) -> None:
    """Gives every node its preferred height, if order and distances allow it."""
    above: Node | None = None
    for node, wish in zip(layer, wished, strict=True):
        node.y = wish
        if above is not None:
            node.y = max(wish, above.y + above.height / 2 + above.below + BETWEEN + node.height / 2)
        above = node
    shift = fmean(wish - node.y for node, wish in zip(layer, wished, strict=True))
    for node in layer:
        node.y += shift


def _document(title: str, layers: list[list[Node]]) -> str:
    nodes = [node for layer in layers for node in layer]
    body: list[str] = []
    for layer in layers:
        left, right = min(node.x for node in layer), max(node.x + node.width for node in layer)
        straight = right + PAD + max((link.width for node in layer for link in node.right), default=0.0)
        for node in layer:
            if node.box is None:
                body.append(_path(f"M {left:.1f} {node.y:.1f} H {right:.1f}"))
            for link in node.right:
                body += _link(link, right, straight)
    body += [line for node in nodes if node.box is not None for line in _box(node, node.box)]
    width = max([node.x + node.width for node in nodes] + [PAD + CHAR * 1.2 * _columns(title)]) + PAD
    height = max(node.y + node.height / 2 + node.below for node in nodes) + PAD * 2
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}">',
            f"<title>{_xml(title)}</title><style>{STYLE}</style>",
            '<rect class="page" width="100%" height="100%"/>',
            _text(PAD, PAD + LINE, title, "title"),
            *body,
            "</svg>\n",
        ]
    )


def _link(link: Link, right: float, straight: float) -> list[str]:
    """``right``: right edge of its layer's boxes; ``straight``: the x where the straight part of the link ends."""
    start, end = link.source.x + link.source.width, link.target.x
    y, to = link.source.port(link), link.target.port(link)
    if link.source.box is None:
        start = right
    column = straight + CURVE
    bend = (straight + column) / 2
    parts = [
        _path(
            f"M {start:.1f} {y:.1f} H {straight:.1f} C {bend:.1f} {y:.1f} {bend:.1f} {to:.1f} "
            f"{column:.1f} {to:.1f} H {max(column, end):.1f}"
        )
    ]
    if link.head == ">":
        parts.append(_head(end, to, -HEAD))
    if link.head == "<":
        parts.append(_head(start, y, HEAD))
    x = right + PAD / 2 + (HEAD if link.head == "<" else 0.0)
    lines = len(link.labels)
    return parts + [_text(x, y - 5 - LINE * (lines - 1 - i), label, "label") for i, label in enumerate(link.labels)]


def _box(node: Node, box: Box) -> list[str]:
    top, round_ = node.y - node.height / 2, {"spout": 16, "bolt": 3, "rows": 3}[box.kind]
    dashed = ' stroke-dasharray="4 3"' if box.kind == "rows" else ""
    parts = [
        f'<rect class="{box.kind}" x="{node.x:.1f}" y="{top:.1f}" width="{node.width:.1f}" '
        f'height="{node.height:.1f}" rx="{round_}"{dashed}/>'
    ]
    first = node.y - LINE * len(box.lines) / 2 + 12.5
    parts += [
        _text(node.x + PAD, first + LINE * i, line, "name" if i == 0 else "more") for i, line in enumerate(box.lines)
    ]
    if node.loop is not None:
        a, b, bottom = node.x + node.width * 0.75, node.x + node.width * 0.25, top + node.height
        parts += [
            _path(f"M {a:.1f} {bottom:.1f} C {a:.1f} {bottom + 30:.1f} {b:.1f} {bottom + 30:.1f} {b:.1f} {bottom:.1f}"),
            f'<path class="head" d="M {b:.1f} {bottom:.1f} l -4 {HEAD:.0f} h 8 z"/>',
        ]
        parts += [
            _text(node.x + PAD, bottom + 22 + LINE * (i + 1), label, "label") for i, label in enumerate(node.loop)
        ]
    return parts


def _path(d: str) -> str:
    return f'<path class="arrow" d="{d}"/>'


def _head(x: float, y: float, back: float) -> str:
    return f'<path class="head" d="M {x:.1f} {y:.1f} l {back:.0f} -4 v 8 z"/>'


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" xml:space="preserve">{_xml(text)}</text>'


def _xml(text: str) -> str:
    """Escaped, and without characters that XML cannot hold."""
    return escape(re.sub(r"[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text))


def _columns(text: str) -> int:
    """Columns of a fixed-width font."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)
