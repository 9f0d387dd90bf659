"""A declared output stream."""

from dataclasses import dataclass
from typing import Any

from pystorm_source.errors import given


@dataclass(frozen=True)
class Stream:
    """``Stream(fields=["word string", "n long"], name="default", direct=False)``.

    A field is a name, or a name and a Spark DDL type. Types are needed if the stream leaves the topology as rows;
    between spouts and bolts they are documentation. Raises TypeError for other shapes, ValueError for repeated names.
    """

    fields: tuple[str, ...] = ()
    types: tuple[str | None, ...] = ()
    name: str = "default"
    direct: bool = False

    def __init__(self, fields: Any = None, name: str = "default", direct: bool = False):
        if fields is None:
            fields = []
        if isinstance(fields, str) or not isinstance(fields, (list, tuple)):
            raise TypeError(f"Stream fields must be a list, tuple or None of field names. Given: {given(fields)}")
        for field in fields:
            if not isinstance(field, str):
                raise TypeError(
                    f"every field of a Stream must be a str such as 'word' or 'word string'. Given: {given(field)}"
                )
            if not field.strip():
                raise ValueError(f"a field of a Stream needs a name. Given: {given(fields)}")
        if not isinstance(name, str):
            raise TypeError(f"the name of a Stream must be a str. Given: {given(name)}")
        if not isinstance(direct, bool):
            raise TypeError(f"`direct` of a Stream must be a bool. Given: {given(direct)}")
        names, types = [], []
        for field in fields:
            head, *more = field.split(None, 1)
            head, _, rest = head.partition(":")
            if not head:
                raise ValueError(f"a field of a Stream needs a name. Given: {given(field)}")
            names.append(head)
            types.append((rest + "".join(more)).strip(": \t") or None)
        repeated = sorted({field for field in names if names.count(field) > 1})
        if repeated:
            raise ValueError(
                f"field names of a Stream must differ; repeated: {', '.join(repeated)}. Given: {given(list(fields))}"
            )
        object.__setattr__(self, "fields", tuple(names))
        object.__setattr__(self, "types", tuple(types))
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "direct", direct)

    @property
    def typed(self) -> bool:
        """Whether every field has a type."""
        return all(ddl is not None for ddl in self.types)

    @classmethod
    def all_of(cls, outputs: Any, given_by: str) -> tuple["Stream", ...]:
        """The streams that a component's ``outputs`` declare; plain names together are the default stream.

        Raises TypeError for other shapes, ValueError for a name given twice and for one of the engine's.
        """
        if outputs is None:
            return ()
        if isinstance(outputs, str) or not isinstance(outputs, (list, tuple)):
            raise TypeError(
                f"outputs of {given_by} must be a list or tuple of field names and Streams. Given: {given(outputs)}"
            )
        streams: list[Stream] = []
        default_fields: list[str] = []
        for output in outputs:
            if isinstance(output, Stream):
                streams.append(output)
            elif isinstance(output, str):
                default_fields.append(output)
            else:
                raise TypeError(f"outputs of {given_by} must hold str or Stream. Given: {given(output)}")
        if default_fields:
            streams.insert(0, Stream(fields=default_fields))
        names = [stream.name for stream in streams]
        for name in names:
            if name.startswith("__"):
                raise ValueError(
                    f"stream names that begin with '__' belong to the engine: rename this one in `outputs` of "
                    f"{given_by}. Given: {given(name)}"
                )
        if len(set(names)) != len(names):
            raise ValueError(f"{given_by} declares a stream twice in `outputs`. Given: {given(names)}")
        return tuple(streams)


DEAD_LETTER = Stream(
    [
        "component string",
        "reason string",
        "attempts int",
        "partition string",
        "offset long",
        "values string",
        "time timestamp",
    ],
    name="__dead_letter",
)
"""Every spout's stream of dead letters, if ``topology.dead.letter`` is ``stream``."""
