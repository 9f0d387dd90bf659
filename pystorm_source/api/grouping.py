"""How a stream's tuples are distributed among the tasks that subscribe to it."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn

from pystorm_source.errors import ArgumentTypeError, NotSupportedError, TopologyError, given

KINDS = ("shuffle", "local_or_shuffle", "fields", "partial_key", "all", "global", "none", "direct", "custom")

_BY_FIELDS = ("fields", "partial_key")


@dataclass(frozen=True, init=False)
class Grouping:
    """Which tasks of a bolt get a tuple. Storm's groupings; equal by value.

    Trap: a grouping distributes among the ``par`` tasks inside one Spark task. Equal keys in two Spark tasks do not
    meet: emit increments and let Spark sum them up.

    Attributes:
        SHUFFLE (Grouping): each task in turn, exactly even. The default.
        ALL (Grouping): every task.
        GLOBAL (Grouping): the task with the lowest id: one per Spark task, not one in the cluster.
        NONE (Grouping): any task.
        LOCAL_OR_SHUFFLE (Grouping): as SHUFFLE, since all tasks are in one worker.
        DIRECT (Grouping): the task that the producer names, on a stream declared ``direct=True``.
        chooser (Any): the object of a custom grouping.

    Args:
        kind (str): shuffle, local_or_shuffle, fields, partial_key, all, global, none, direct or custom. Take the
            constants and ``fields``, ``partial_key``, ``custom`` instead.
        names (list[str] | tuple[str, ...]): the fields of ``fields`` and ``partial_key``. Defaults to ().
        custom (Any): the object that chooses, of ``custom``. Defaults to None.

    Raises:
        TopologyError: an unknown kind, or no field for a kind that needs one.
        ArgumentTypeError: names that are no str, names or an object that the kind does not take, an object that
            cannot choose.

    Example:
        >>> from pystorm_source.spouts import MemorySpout
        >>> from pystorm_source.testing import run_topology
        >>> class Seen(Bolt):
        ...     outputs = ["word string", "task long"]
        ...     def process(self, tup):
        ...         self.emit([tup.values.word, self.task_id])
        >>> class Words(Topology):
        ...     words = MemorySpout.spec(fields=["word string"], rows=[["cow"], ["dog"], ["cow"]])
        ...     seen = Seen.spec(inputs={words: Grouping.fields("word")}, par=4)
        >>> rows = run_topology(Words).rows("seen")
        >>> len({task for word, task in rows if word == "cow"})
        1
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
            raise TopologyError(
                f"a grouping is one of {', '.join(KINDS)}. Given: {given(kind)}", code="PYSTORM_INVALID_TOPOLOGY"
            )
        if not isinstance(names, (list, tuple)):
            raise ArgumentTypeError(
                f"the fields of a grouping are a list or tuple of names. Given: {given(names)}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        if kind in _BY_FIELDS:
            if not names:
                raise TopologyError(
                    f"a {kind} grouping needs at least one field, such as Grouping.{kind}('word'). Given: none",
                    code="PYSTORM_INVALID_TOPOLOGY",
                )
            for name in names:
                if not isinstance(name, str):
                    raise ArgumentTypeError(
                        f"a {kind} grouping takes field names. Given: {given(name)}", code="PYSTORM_INVALID_ARGUMENT"
                    )
        elif names:
            raise ArgumentTypeError(
                f"a {kind} grouping takes no fields. Given: {given(names)}", code="PYSTORM_INVALID_ARGUMENT"
            )
        if kind == "custom":
            if isinstance(custom, type) or not callable(getattr(custom, "choose_tasks", None)):
                raise ArgumentTypeError(
                    "a custom grouping takes an object with choose_tasks(task, values) -> list of task ids, and "
                    f"optionally prepare(context, stream, targets). Given: {given(custom)}",
                    code="PYSTORM_INVALID_ARGUMENT",
                )
        elif custom is not None:
            raise ArgumentTypeError(
                f"a {kind} grouping takes no object: write Grouping.custom(obj). Given: {given(custom)}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "names", tuple(names))
        object.__setattr__(self, "chooser", custom)

    @classmethod
    def fields(cls, *fields: Any) -> "Grouping":
        """Tuples with equal values of these fields go to the same task of one Spark task.

        The task differs from Storm's for the same key, unless ``topology.fields.grouping.hash`` is ``java``.

        Args:
            *fields (str | list[str]): ``fields("a", "b")`` or ``fields(["a", "b"])``.

        Returns:
            Grouping: a fields grouping.

        Raises:
            TopologyError: no field.
            ArgumentTypeError: a name that is no str.
        """
        return cls("fields", _listed(fields))

    @classmethod
    def partial_key(cls, *fields: Any) -> "Grouping":
        """Tuples with equal values go to the less used of two tasks: a frequent key does not fill one task.

        Trap: each of the two tasks sees a part of the key's tuples; add the parts up after the bolt. From "The Power
        of Both Choices" (Nasir et al., 2015); STORM-632.

        Args:
            *fields (str | list[str]): as in ``fields``.

        Returns:
            Grouping: a partial key grouping.

        Raises:
            TopologyError: no field.
            ArgumentTypeError: a name that is no str.
        """
        return cls("partial_key", _listed(fields))

    @classmethod
    def custom(cls, obj: Any) -> "Grouping":
        """Your own object chooses the tasks. Storm's ``CustomStreamGrouping``.

        ``obj.choose_tasks(task, values)`` returns the list of task ids that get a tuple; ``task`` is the producer's.
        ``obj.prepare(context, stream, targets)``, if defined, is called first: with the producer's context, the
        stream (``.component``, ``.stream``) and the task ids that subscribe, ascending.

        Args:
            obj (Any): the object. It travels to the Spark tasks with the topology, so it must pickle. Every producer
                task has its own copy.

        Returns:
            Grouping: a custom grouping.

        Raises:
            ArgumentTypeError: an object without ``choose_tasks``.
        """
        return cls("custom", (), obj)

    @classmethod
    def custom_object(cls, java_class_name: Any, arg_list: Any = ()) -> NoReturn:
        """streamparse's grouping by a Java class. No Java runs here: use ``custom``.

        Args:
            java_class_name (str): the class.
            arg_list (list): its arguments. Defaults to ().

        Raises:
            NotSupportedError: always.
        """
        raise NotSupportedError(
            "no Java runs here: write the grouping in Python and use Grouping.custom(obj). Given: "
            f"custom_object({given(java_class_name)})",
            code="PYSTORM_NOT_SUPPORTED",
        )

    @classmethod
    def custom_serialized(cls, java_serialized: Any) -> NoReturn:
        """streamparse's grouping by a serialized Java object. No Java runs here: use ``custom``.

        Args:
            java_serialized (bytes): the object.

        Raises:
            NotSupportedError: always, for bytes.
            ArgumentTypeError: an argument that is no bytes.
        """
        if not isinstance(java_serialized, bytes):
            raise ArgumentTypeError(
                f"custom_serialized takes a serialized Java object as bytes. Given: {given(java_serialized)}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        raise NotSupportedError(
            "no Java runs here: write the grouping in Python and use Grouping.custom(obj). Given: custom_serialized of "
            f"{len(java_serialized)} bytes",
            code="PYSTORM_NOT_SUPPORTED",
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
