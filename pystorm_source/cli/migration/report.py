"""The report of a migration, as text for the terminal."""

import textwrap
from collections.abc import Iterator

from pystorm_source.cli.migration.changes import Changes
from pystorm_source.cli.migration.jobs import Job
from pystorm_source.cli.migration.topologies import Spec

WIDTH = 100
_INDENT = " " * 14


def report(changes: Changes) -> str:
    """Says what stays and what changes in each component, and what else was found; ends with a newline."""
    lines: list[str] = []
    for job in changes.jobs:
        lines += [*_topology(job), ""]
    if not changes.jobs:
        lines += [f"no class of Topology is in {changes.project.settings.topologies}/", ""]
    others = [*((file.problem, "not parsed; the copy is as it was") for file in changes.project.unread), *changes.notes]
    if others:
        lines.append("the rest of the project")
        for where, text in others:
            lines += _wrapped(f"  {where}: {text}", "    ")
        lines.append("")
    lines.append(f"{changes.questions} question{'s' if changes.questions != 1 else ''} to answer, marked QUESTION")
    return "\n".join(lines) + "\n"


def _topology(job: Job) -> Iterator[str]:
    topology = job.topology
    yield f"topology {topology.name}, {topology.file.at(topology.node)}"
    for note in job.notes.get("", []):
        yield from _wrapped(f"    {note.kind:10}{note.text}", _INDENT)
    for spec in topology.specs.values():
        yield f"  {spec.name}: {_described(spec)}"
        for note in job.notes.get(spec.attribute, []):
            yield from _wrapped(f"    {note.kind:10}{note.text}", _INDENT)


def _described(spec: Spec) -> str:
    if spec.component is None:
        return spec.class_name
    return f"{spec.component.kind or 'component'} {spec.class_name}, {spec.component.at}"


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
