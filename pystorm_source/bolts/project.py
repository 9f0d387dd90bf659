"""Columns computed from columns."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from pystorm_source.api.component_spec import ComponentSpec
from pystorm_source.bolts.derived_bolt import Columns, DerivedBolt, ddl_or_refuse
from pystorm_source.bolts.expressions import projected, refused
from pystorm_source.errors import ArgumentTypeError, given


class ProjectBolt(DerivedBolt):
    """Emits chosen, renamed or computed columns of every row, like Spark's ``select``.

    Attributes:
        columns (list[str] | dict[str, str | pyarrow.compute.Expression]): names of columns; or name → another column,
            or an expression of columns. Defaults to None: ``spec`` gives it.

    Raises:
        SchemaError: by ``spec``, a column that an input does not have, an expression that does not fit the types, or a
            result of a type that Spark does not have.

    Example:
        >>> import pyarrow.compute as pc
        >>> from pystorm_source.bolts import ProjectBolt
        >>> from pystorm_source.spouts import MemorySpout
        >>> from pystorm_source.testing import run_topology
        >>> class Sales(Topology):
        ...     sales = MemorySpout.spec(fields=["shop string", "price double", "count int"], rows=[["a", 9.5, 2]])
        ...     totals = ProjectBolt.spec(
        ...         inputs=[sales], columns={"place": "shop", "total": pc.field("price") * pc.field("count")}
        ...     )
        >>> run_topology(Sales).rows("totals")
        [('a', 19.0)]
    """

    columns: ClassVar[Sequence[str] | Mapping[str, Any] | None] = None

    @classmethod
    def spec(  # type: ignore[override]  # no `limits`: it calls no service
        cls,
        name: str | None = None,
        inputs: Any = None,
        par: int | dict[str, int] | None = None,
        config: dict[str, Any] | None = None,
        *,
        columns: Sequence[str] | Mapping[str, Any] | None = None,
    ) -> ComponentSpec:
        """This bolt for a Topology.

        Args:
            name (str): as in ``Bolt.spec``.
            inputs (ComponentSpec | GlobalStreamId | list | dict): as in ``Bolt.spec``.
            par (int | dict[str, int]): as in ``Bolt.spec``.
            config (dict): as in ``Bolt.spec``.
            columns (list[str] | dict[str, str | pyarrow.compute.Expression]): the class's, if None.

        Returns:
            ComponentSpec: what an attribute of the Topology is set to.

        Raises:
            ArgumentTypeError: no columns, or something other than columns.
            SchemaError: a column that an input does not have, an expression that does not fit the types, or a result of
                a type that Spark does not have.
        """
        made = cls._having("columns", columns)
        made._expressions()
        return made._with_outputs(super(ProjectBolt, made).spec(name=name, inputs=inputs, par=par, config=config))

    @classmethod
    def _expressions(cls) -> dict[str, pc.Expression]:
        chosen = cls.columns
        if isinstance(chosen, Sequence) and not isinstance(chosen, str):
            chosen = {each: each for each in chosen} if all(isinstance(each, str) for each in chosen) else None
        if not isinstance(chosen, Mapping) or not chosen or not all(map(_is_column, chosen.values())):
            raise ArgumentTypeError(
                f"the `columns` of a {cls.__name__} are a list of names, or a dict from names to columns and "
                f"expressions of pyarrow.compute, such as {{'total': pc.field('price') * 2}}. "
                f"Given: {given(cls.columns)}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        return {name: pc.field(each) if isinstance(each, str) else each for name, each in chosen.items()}

    @classmethod
    def _passed(cls) -> dict[str, str]:
        """Output → the column that it is."""
        chosen = cls.columns if isinstance(cls.columns, Mapping) else {each: each for each in cls.columns or ()}
        return {name: each for name, each in chosen.items() if isinstance(each, str)}

    @classmethod
    def _needed(cls, config: Mapping[str, Any]) -> list[str] | None:
        passed = cls._passed()
        return list(dict.fromkeys(passed.values())) if len(passed) == len(cls._expressions()) else None

    @classmethod
    def _derived(cls, columns: Columns, config: Mapping[str, Any]) -> list[str]:
        passed, fields = cls._passed(), []
        for name, expression in cls._expressions().items():
            try:
                made = projected(columns.schema.empty_table(), {name: expression}).schema.field(0).type
            except pa.ArrowException as error:
                raise refused(error, f"column {name!r} of {cls.__name__}", expression, columns.schema) from None
            source = passed.get(name)
            fields.append(f"{name} {ddl_or_refuse(made, name) if source is None else columns.ddl[source]}")
        return fields

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        """Looks the columns up.

        Raises:
            ArgumentTypeError: no columns, or something other than columns.
        """
        self._columns = self._expressions()

    def process_batch(self, batch: pa.RecordBatch) -> None:
        """Emits the columns."""
        for each in projected(pa.Table.from_batches([batch]), self._columns).to_batches():
            self.emit_batch(each)


def _is_column(value: object) -> bool:
    return isinstance(value, (str, pc.Expression))
