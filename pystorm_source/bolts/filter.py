"""Rows that meet a condition."""

from collections.abc import Mapping
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from pystorm_source.api.component_spec import ComponentSpec
from pystorm_source.bolts.derived_bolt import Columns, DerivedBolt
from pystorm_source.bolts.expressions import filtered, refused
from pystorm_source.errors import ArgumentTypeError, given


class FilterBolt(DerivedBolt):
    """Emits the rows for which a condition is true, like Spark's ``filter``: a null is not true. All its inputs must
    have the same columns, which it emits.

    Attributes:
        condition (pyarrow.compute.Expression): of the columns by name. Defaults to None: ``spec`` gives it.

    Raises:
        SchemaError: by ``spec``, a column that the inputs do not have, or a condition that does not fit their types.

    Example:
        >>> import pyarrow.compute as pc
        >>> from pystorm_source.bolts import FilterBolt
        >>> from pystorm_source.spouts import MemorySpout
        >>> from pystorm_source.testing import run_topology
        >>> class Sales(Topology):
        ...     sales = MemorySpout.spec(fields=["shop string", "price double"], rows=[["a", 9.5], ["b", 12.0]])
        ...     dear = FilterBolt.spec(inputs=[sales], condition=pc.field("price") > 10)
        >>> run_topology(Sales).rows("dear")
        [('b', 12.0)]
    """

    condition: ClassVar[pc.Expression | None] = None

    @classmethod
    def spec(  # type: ignore[override]  # no `limits`: it calls no service
        cls,
        name: str | None = None,
        inputs: Any = None,
        par: int | dict[str, int] | None = None,
        config: dict[str, Any] | None = None,
        *,
        condition: pc.Expression | None = None,
    ) -> ComponentSpec:
        """This bolt for a Topology.

        Args:
            name (str): as in ``Bolt.spec``.
            inputs (ComponentSpec | GlobalStreamId | list | dict): as in ``Bolt.spec``.
            par (int | dict[str, int]): as in ``Bolt.spec``.
            config (dict): as in ``Bolt.spec``.
            condition (pyarrow.compute.Expression): such as ``pc.field("price") > 10``. Defaults to the class's.

        Returns:
            ComponentSpec: what an attribute of the Topology is set to.

        Raises:
            ArgumentTypeError: no condition, or one of another type.
            SchemaError: a column that the inputs do not have, or a condition that does not fit their types.
        """
        made = cls._having("condition", condition)
        chosen = made.condition
        if not isinstance(chosen, pc.Expression):
            raise ArgumentTypeError(
                f"the `condition` of a {cls.__name__} is an expression of pyarrow.compute, such as "
                f"pc.field('price') > 10. Given: {given(chosen)}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        return made._with_outputs(super(FilterBolt, made).spec(name=name, inputs=inputs, par=par, config=config))

    @classmethod
    def _needed(cls, config: Mapping[str, Any]) -> list[str] | None:
        return None

    @classmethod
    def _derived(cls, columns: Columns, config: Mapping[str, Any]) -> list[str]:
        try:
            filtered(columns.schema.empty_table(), cls.condition)
        except pa.ArrowException as error:
            raise refused(error, f"the condition of {cls.__name__}", cls.condition, columns.schema) from None
        return [f"{name} {ddl}" for name, ddl in columns.ddl.items()]

    def process_batch(self, batch: pa.RecordBatch) -> None:
        """Emits the rows that meet the condition."""
        for each in filtered(pa.Table.from_batches([batch]), self.condition).to_batches():
            self.emit_batch(each)
