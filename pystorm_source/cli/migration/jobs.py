"""A topology as the new project runs it, with what was found out about it."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pystorm_source.cli.migration.java_spouts import QUESTION, KafkaSource
from pystorm_source.cli.migration.topologies import Spec, TopologyClass

STAYS, CHANGES = "stays", "changes"


class Note(NamedTuple):
    """A finding: STAYS, CHANGES or QUESTION, and what."""

    kind: str
    text: str


class Option(NamedTuple):
    """An option of the reader in job.py, and why."""

    key: str
    value: Any
    why: str = ""


@dataclass(repr=False)  # it may hold a password
class Job:
    """A topology as job.py runs it. ``name``: its file's name; with the class, if the file has several topologies."""

    name: str
    topology: TopologyClass
    kafka: dict[str, KafkaSource]
    options: list[Option] = field(default_factory=list)
    schema: str = ""
    notes: dict[str, list[Note]] = field(default_factory=dict)
    """A component's attribute, or "" for the topology → findings."""

    def note(self, spec: Spec | None, kind: str, text: str) -> None:
        """Adds a finding, once."""
        notes = self.notes.setdefault(spec.attribute if spec else "", [])
        if Note(kind, text) not in notes:
            notes.append(Note(kind, text))

    def ask(self, spec: Spec | None, text: str) -> None:
        """Adds a question."""
        self.note(spec, QUESTION, text)

    def change(self, spec: Spec | None, text: str) -> None:
        """Adds a change."""
        self.note(spec, CHANGES, text)
