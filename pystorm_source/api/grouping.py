"""How a stream's tuples are distributed among the tasks that subscribe to it."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn

from pystorm_source.errors import given

KINDS = ("shuffle", "local_or_shuffle", "fields", "partial_key", "all", "global", "none", "direct", "custom")

_BY_FIELDS = ("fields", "partial_key")


@dataclass(frozen=True, init=False)
class Grouping:
    """A stream grouping, equal by value.

    ``SHUFFLE`` (evenly in turn), ``Grouping.fields("word")`` (same values, same task), ``Grouping.partial_key("word")``
    (same values, the less used of two tasks), ``ALL`` (every task), ``GLOBAL`` (the lowest task), ``NONE`` (any task),
    ``LOCAL_OR_SHUFFLE`` (all tasks are in this worker: shuffle), ``DIRECT`` (the producer names the task; for streams
    declared ``direct=True``), ``Grouping.custom(obj)`` (your object chooses).

    Groupings distribute among the ``par`` tasks inside one Spark task. Across Spark partitions, group in Spark.

    Raises ValueError for an unknown kind and for a missing field, TypeError for names that are not str, for names or an
    object if the kind takes none, and for an object that cannot choose.
    """

    kind: str
    names: tuple[str, ...] = ()
    chooser: Any = field(default=None, hash=False)

    SHUFFLE: ClassVar["Grouping"]
    ALL: ClassVar["Grouping"]
    GLOBAL: ClassVar["Grouping"]
    NONE: ClassVar["Grouping"]
    LOCAL_OR_SHUFFLE: ClassVar["Grouping"]
    DIRECT: ClassVar["Grouping"]

    def __init__(self, kind: str, names: Any = (), custom: Any = None):
        if not isinstance(kind, str) or kind not in KINDS:
            raise ValueError(f"a grouping is one of {', '.join(KINDS)}. Given: {given(kind)}")
        if not isinstance(names, (list, tuple)):
            raise TypeError(f"the fields of a grouping are a list or tuple of names. Given: {given(names)}")
        if kind in _BY_FIELDS:
            if not names:
                raise ValueError(
                    f"a {kind} grouping needs at least one field, such as Grouping.{kind}('word'). Given: none"
                )
            for name in names:
                if not isinstance(name, str):
                    raise TypeError(f"a {kind} grouping takes field names. Given: {given(name)}")
        elif names:
            raise TypeError(f"a {kind} grouping takes no fields. Given: {given(names)}")
        if kind == "custom":
            if isinstance(custom, type) or not callable(getattr(custom, "choose_tasks", None)):
                raise TypeError(
                    "a custom grouping takes an object with choose_tasks(task, values) -> list of task ids, and "
                    f"optionally prepare(context, stream, targets). Given: {given(custom)}"
                )
        elif custom is not None:
            raise TypeError(f"a {kind} grouping takes no object: write Grouping.custom(obj). Given: {given(custom)}")
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "names", tuple(names))
        object.__setattr__(self, "chooser", custom)

    @classmethod
    def fields(cls, *fields: Any) -> "Grouping":
        """``fields("a", "b")``, ``fields(["a", "b"])`` or ``fields(("a", "b"))``: equal values go to the same task.

        Raises ValueError without a field, TypeError for names that are no str.
        """
        return cls("fields", _listed(fields))

    @classmethod
    def partial_key(cls, *fields: Any) -> "Grouping":
        """As ``fields``, but the same values go to the less used of two tasks: a frequent key does not fill one task.

        The bolt sees a part of a key's tuples only; add the parts up after it. Raises as ``fields`` does.
        """
        return cls("partial_key", _listed(fields))

    @classmethod
    def custom(cls, obj: Any) -> "Grouping":
        """``obj.choose_tasks(task, values)`` answers the list of task ids that get a tuple; ``task`` is the producer's.

        ``obj.prepare(context, stream, targets)``, if defined, is called first: with the producer's context, the
        stream (``.component``, ``.stream``) and the task ids that subscribe, ascending. The object travels to the Spark
        tasks with the topology: it must pickle. Raises TypeError for an object without ``choose_tasks``.
        """
        return cls("custom", (), obj)

    @classmethod
    def custom_object(cls, java_class_name: Any, arg_list: Any = ()) -> NoReturn:
        """streamparse's grouping by a Java class. Raises NotImplementedError: no Java runs here."""
        raise NotImplementedError(
            "no Java runs here: write the grouping in Python and use Grouping.custom(obj). Given: "
            f"custom_object({given(java_class_name)})"
        )

    @classmethod
    def custom_serialized(cls, java_serialized: Any) -> NoReturn:
        """streamparse's grouping by a serialized Java object. Raises NotImplementedError, TypeError for no bytes."""
        if not isinstance(java_serialized, bytes):
            raise TypeError(
                f"custom_serialized takes a serialized Java object as bytes. Given: {given(java_serialized)}"
            )
        raise NotImplementedError(
            "no Java runs here: write the grouping in Python and use Grouping.custom(obj). Given: custom_serialized of "
            f"{len(java_serialized)} bytes"
        )

    def __str__(self) -> str:
        if self.kind == "custom":
            return f"custom({type(self.chooser).__name__})"
        return f"{self.kind}({', '.join(self.names)})" if self.names else self.kind


def _listed(fields: tuple[Any, ...]) -> Any:
    return fields[0] if len(fields) == 1 and isinstance(fields[0], (list, tuple)) else fields


Grouping.SHUFFLE = Grouping("shuffle")
Grouping.ALL = Grouping("all")
Grouping.GLOBAL = Grouping("global")
Grouping.NONE = Grouping("none")
Grouping.LOCAL_OR_SHUFFLE = Grouping("local_or_shuffle")
Grouping.DIRECT = Grouping("direct")
