"""A declared output stream."""

from dataclasses import dataclass
from typing import Any

from pystorm_source.errors import ArgumentTypeError, TopologyError, given


@dataclass(frozen=True)
class Stream:
    """A declared output stream: an element of ``outputs``. streamparse's ``Stream``.

    Types are needed if the stream leaves the topology as rows; between spouts and bolts they are documentation.

    Attributes:
        fields (tuple[str, ...]): the names.
        types (tuple[str | None, ...]): their Spark DDL types; None for a name without a type.

    Args:
        fields (list[str]): names, or names and Spark DDL types: "word", "word string", "word: string". Defaults to
            no field.
        name (str): name of the stream. Defaults to 'default'.
        direct (bool): the producer names the task that gets a tuple (``Grouping.DIRECT``). Defaults to False.

    Raises:
        ArgumentTypeError: an argument of another type.
        TopologyError: names that are empty or repeated.

    Example:
        >>> errors = Stream(["line string", "n long"], name="errors")
        >>> errors.fields, errors.types
        (('line', 'n'), ('string', 'long'))
    """

    fields: tuple[str, ...] = ()
    types: tuple[str | None, ...] = ()
    name: str = "default"
    direct: bool = False

    def __init__(self, fields: Any = None, name: str = "default", direct: bool = False):
        if fields is None:
            fields = []
        if isinstance(fields, str) or not isinstance(fields, (list, tuple)):
            raise ArgumentTypeError(
                f"Stream fields must be a list, tuple or None of field names. Given: {given(fields)}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        for field in fields:
            if not isinstance(field, str):
                raise ArgumentTypeError(
                    f"every field of a Stream must be a str such as 'word' or 'word string'. Given: {given(field)}",
                    code="PYSTORM_INVALID_ARGUMENT",
                )
            if not field.strip():
                raise TopologyError(
                    f"a field of a Stream needs a name. Given: {given(fields)}", code="PYSTORM_INVALID_TOPOLOGY"
                )
        if not isinstance(name, str):
            raise ArgumentTypeError(
                f"the name of a Stream must be a str. Given: {given(name)}", code="PYSTORM_INVALID_ARGUMENT"
            )
        if not isinstance(direct, bool):
            raise ArgumentTypeError(
                f"`direct` of a Stream must be a bool. Given: {given(direct)}", code="PYSTORM_INVALID_ARGUMENT"
            )
        names, types = [], []
        for field in fields:
            head, *more = field.split(None, 1)
            head, _, rest = head.partition(":")
            if not head:
                raise TopologyError(
                    f"a field of a Stream needs a name. Given: {given(field)}", code="PYSTORM_INVALID_TOPOLOGY"
                )
            names.append(head)
            types.append((rest + "".join(more)).strip(": \t") or None)
        repeated = sorted({field for field in names if names.count(field) > 1})
        if repeated:
            raise TopologyError(
                f"field names of a Stream must differ; repeated: {', '.join(repeated)}. Given: {given(list(fields))}",
                code="PYSTORM_INVALID_TOPOLOGY",
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

        Args:
            outputs (list[str | Stream]): the declaration.
            given_by (str): name of the component, for messages.

        Returns:
            tuple[Stream, ...]: the streams.

        Raises:
            ArgumentTypeError: another shape.
            TopologyError: a stream declared twice, or a name that begins with ``__``.
        """
        if outputs is None:
            return ()
        if isinstance(outputs, str) or not isinstance(outputs, (list, tuple)):
            raise ArgumentTypeError(
                f"outputs of {given_by} must be a list or tuple of field names and Streams, such as "
                f"['word string', 'n long']. Given: {given(outputs)}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        streams: list[Stream] = []
        default_fields: list[str] = []
        for output in outputs:
            if isinstance(output, Stream):
                streams.append(output)
            elif isinstance(output, str):
                default_fields.append(output)
            else:
                raise ArgumentTypeError(
                    f"outputs of {given_by} must hold str or Stream. Given: {given(output)}",
                    code="PYSTORM_INVALID_ARGUMENT",
                )
        if default_fields:
            streams.insert(0, Stream(fields=default_fields))
        names = [stream.name for stream in streams]
        for name in names:
            if name.startswith("__"):
                raise TopologyError(
                    f"stream names that begin with '__' belong to the engine: rename this one in `outputs` of "
                    f"{given_by}. Given: {given(name)}",
                    code="PYSTORM_INVALID_TOPOLOGY",
                )
        if len(set(names)) != len(names):
            raise TopologyError(
                f"{given_by} declares a stream twice in `outputs`. Given: {given(names)}",
                code="PYSTORM_INVALID_TOPOLOGY",
            )
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
