"""The content of a plan's picture, and its two written forms: text and Mermaid's flowchart.

A box per component and per open stream, an arrow per pair of boxes with one label for each subscription between them.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from pystorm_source.api.stream import Stream
from pystorm_source.plan.plan import ComponentPlan, EdgePlan, Plan

MOST_FIELDS = 8


class Box(NamedTuple):
    """``kind`` is spout, bolt or rows (an open stream); ``lines`` are its text, the first is its name."""

    key: str
    kind: str
    lines: tuple[str, ...]


class Arrow(NamedTuple):
    """From one box to another, or to itself."""

    source: str
    target: str
    labels: tuple[str, ...]


class Picture(NamedTuple):
    """Boxes come upstream first, except in cycles."""

    title: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]

    @classmethod
    def of(cls, plan: Plan, stages: Mapping[str, int] | None = None) -> "Picture":
        """Everything to draw of a plan. ``stages``: component → number of its stage, if it is cut."""
        keys = {component.name: f"c{i}" for i, component in enumerate(plan.components)}
        boxes = [
            Box(keys[c.name], "spout" if c.is_spout else "bolt", (c.name, _class_and_tasks(c), *_stage(c, stages)))
            for c in plan.components
        ]
        labels: dict[tuple[str, str], list[str]] = {}
        for edge in plan.edges:
            prefix = "" if edge.stream == "default" else f"{edge.stream} "
            labels.setdefault((keys[edge.producer], keys[edge.consumer]), []).append(prefix + grouping_of(plan, edge))
        for i, (component, stream) in enumerate(plan.open_streams):
            fields = _fields(stream)
            shown = fields if len(fields) <= MOST_FIELDS else [*fields[: MOST_FIELDS - 1], "…"]
            boxes.append(Box(f"r{i}", "rows", ("rows", *shown)))
            labels[keys[component.name], f"r{i}"] = [] if stream.name == "default" else [stream.name]
        arrows = tuple(Arrow(source, target, tuple(texts)) for (source, target), texts in labels.items())
        return cls(plan.name, tuple(boxes), arrows)


def grouping_of(plan: Plan, edge: EdgePlan) -> str:
    """``shuffle``, ``fields(word)``, ``custom(Class)``."""
    fields = plan.component(edge.producer).stream(edge.stream).fields
    inner = [fields[position] for position in edge.positions]
    custom = getattr(edge, "custom", None)
    if custom is not None:
        inner = [type(custom).__name__]
    return f"{edge.grouping}({', '.join(inner)})" if inner else edge.grouping


def as_text(plan: Plan, stages: Mapping[str, int] | None = None) -> str:
    """A paragraph per component: its streams with their fields, and the subscribers of each with their groupings.
    ``stages``: component → number of its stage, if it is cut."""
    tasks = sum(len(component.tasks) for component in plan.components)
    lines = [f"topology {plan.name}, {counted(len(plan.components), 'component')}, {counted(tasks, 'task')}"]
    opened = {(component.name, stream.name) for component, stream in plan.open_streams}
    for component in plan.components:
        kind = "spout" if component.is_spout else "bolt"
        described = ", ".join((_class_and_tasks(component), *_stage(component, stages)))
        lines += ["", f"{kind} {component.name} ({described})"]
        for stream in plan.streams_of(component):
            direct = " (direct)" if stream.direct else ""
            lines.append(f"  {stream.name}{direct}: {', '.join(_fields(stream)) or 'no fields'}")
            lines += [
                f"    -> {edge.consumer} by {grouping_of(plan, edge)}{_crossing(edge, stages)}"
                for edge in plan.edges
                if (edge.producer, edge.stream) == (component.name, stream.name)
            ]
            if (component.name, stream.name) in opened:
                lines.append("    -> rows")
    return "\n".join(lines) + "\n"


def _stage(component: ComponentPlan, stages: Mapping[str, int] | None) -> tuple[str, ...]:
    return () if stages is None else (f"stage {stages[component.name]}",)


def _crossing(edge: EdgePlan, stages: Mapping[str, int] | None) -> str:
    if stages is None or stages[edge.producer] == stages[edge.consumer]:
        return ""
    return f", into stage {stages[edge.consumer]}"


def as_mermaid(plan: Plan, stages: Mapping[str, int] | None = None) -> str:
    """A Mermaid flowchart, for Markdown that renders it. ``stages``: as in ``as_text``."""
    picture = Picture.of(plan, stages)
    shapes = {"spout": "([{}])", "bolt": "[{}]", "rows": "[/{}/]"}
    lines = ["---", f"title: {_yaml(picture.title)}", "---", "flowchart LR"]
    for box in picture.boxes:
        text = "<br/>".join(map(_mermaid, box.lines))
        lines.append(f"    {box.key}" + shapes[box.kind].format(f'"{text}"'))
    for arrow in picture.arrows:
        text = "<br/>".join(map(_mermaid, arrow.labels))
        label = f'|"{text}"|' if text else ""
        lines.append(f"    {arrow.source} -->{label} {arrow.target}")
    return "\n".join(lines) + "\n"


def _class_and_tasks(component: ComponentPlan) -> str:
    name, count, processes = component.cls.__name__, len(component.tasks), component.processes
    tasks = f", {count} tasks" if count > 1 else ""
    if not processes:
        return f"{name}{tasks}"
    return f"{name}{tasks or ', 1 task'} in {counted(processes, 'process', 'processes')}"


def _fields(stream: Stream) -> list[str]:
    return [f"{name} {ddl}" if ddl else name for name, ddl in zip(stream.fields, stream.types, strict=True)]


def counted(number: int, noun: str, several: str = "") -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {several or noun + 's'}"


def _mermaid(text: str) -> str:
    """Everything but letters, digits and harmless signs as a character code: no name ends the quotes or is markup."""
    return re.sub(r"[^\w .,:()+/-]", lambda found: f"#{ord(found[0])};", text)


def _yaml(text: str) -> str:
    return '"' + re.sub(r'[\\"\x00-\x1f]', lambda found: f"\\x{ord(found[0]):02x}", text) + '"'
