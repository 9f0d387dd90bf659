"""How a stream's tuples are distributed among the tasks that subscribe to it."""

from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True)
class Grouping:
    """A stream grouping, equal by value.

    ``SHUFFLE`` (evenly in turn), ``Grouping.fields("word")`` (same values, same task), ``ALL`` (every task), ``GLOBAL``
    (the lowest task), ``NONE`` (any task), ``LOCAL_OR_SHUFFLE`` (all tasks are in this worker: shuffle).

    Groupings distribute among the ``par`` tasks inside one Spark task. Across Spark partitions, group in Spark.
    """

    kind: str
    names: tuple[str, ...] = ()

    SHUFFLE: ClassVar["Grouping"]
    ALL: ClassVar["Grouping"]
    GLOBAL: ClassVar["Grouping"]
    NONE: ClassVar["Grouping"]
    LOCAL_OR_SHUFFLE: ClassVar["Grouping"]

    @classmethod
    def fields(cls, *fields: Any) -> "Grouping":
        """``fields("a", "b")``, ``fields(["a", "b"])`` or ``fields(("a", "b"))``.

        Raises ValueError without a field, TypeError for names that are no str.
        """
        names = fields[0] if len(fields) == 1 and isinstance(fields[0], (list, tuple)) else fields
        if not names:
            raise ValueError("a fields grouping needs at least one field, such as Grouping.fields('word'). Given: none")
        for name in names:
            if not isinstance(name, str):
                raise TypeError(f"a fields grouping takes field names. Given: {name!r}")
        return cls("fields", tuple(names))

    def __str__(self) -> str:
        return f"fields({', '.join(self.names)})" if self.kind == "fields" else self.kind


Grouping.SHUFFLE = Grouping("shuffle")
Grouping.ALL = Grouping("all")
Grouping.GLOBAL = Grouping("global")
Grouping.NONE = Grouping("none")
Grouping.LOCAL_OR_SHUFFLE = Grouping("local_or_shuffle")
