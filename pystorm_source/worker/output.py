"""The streams that leave a worker as rows."""

from dataclasses import dataclass, replace
from typing import Self

import pyarrow as pa

from pystorm_source.plan.plan import Plan
from pystorm_source.types.arrow import field_type, nullable


@dataclass(frozen=True)
class ViewPlan:
    """One open stream as the output takes it.

    ``columns``: value i of the stream → output column. The others name the output column of a piece of metadata, -1 for
    none; output columns that nothing fills are null. ``of_one_tree``: a row of several trees has no offset; otherwise
    it has the first tree's. ``number_column``: filled with ``number``. ``shown``: the component and stream that rows
    name, if not the stream itself.
    """

    component: str
    stream: str
    columns: tuple[int, ...]
    component_column: int = -1
    stream_column: int = -1
    task_column: int = -1
    partition_column: int = -1
    offset_column: int = -1
    of_one_tree: bool = False
    number_column: int = -1
    number: int = 0
    shown: tuple[str, str] | None = None

    def constants(self, task: int) -> dict[int, object]:
        """Output column → its constant value in every row of this task."""
        component, stream = self.shown or (self.component, self.stream)
        given = {
            self.component_column: component,
            self.stream_column: stream,
            self.task_column: task,
            self.number_column: self.number,
        }
        return {column: value for column, value in given.items() if column >= 0}


@dataclass(frozen=True)
class OutputPlan:
    """The rows of a worker: their exact Arrow schema, the streams they come from, rows per batch."""

    schema: pa.Schema
    views: tuple[ViewPlan, ...]
    batch_rows: int = 32_768

    @classmethod
    def typed(cls, plan: Plan, numbered: bool = False) -> Self:
        """A column for each typed field of the streams that leave, or that are open: for runs without Spark, whose
        values must fit, too. ``numbered``: the last column names each row's view."""
        views: list[ViewPlan] = []
        columns: list[pa.Field] = []
        leaving = plan.open_streams
        if plan.leaving is not None:
            each_of = [(plan.component(component), stream) for component, stream in plan.leaving]
            leaving = tuple((component, component.stream(stream)) for component, stream in each_of)
        streams = [(component, stream) for component, stream in leaving if any(stream.types)]
        for component, stream in streams:
            places = []
            for name, ddl in zip(stream.fields, stream.types, strict=True):
                places.append(-1 if ddl is None else len(columns))
                if ddl is not None:
                    where = f"field {name!r} of {component.name}.{stream.name}"
                    # Other streams leave it null.
                    columns.append(pa.field(name, field_type(ddl, where), len(streams) > 1 or nullable(ddl, name)))
            views.append(ViewPlan(component.name, stream.name, tuple(places)))
        if not numbered:
            return cls(pa.schema(columns), tuple(views))
        number = len(columns)
        with_numbers = (replace(view, number_column=number, number=i) for i, view in enumerate(views))
        return cls(pa.schema([*columns, pa.field("", pa.int32(), False)]), tuple(with_numbers))

    def view(self, component: str, stream: str) -> ViewPlan | None:
        """The view of a stream, or None if its rows are not wanted."""
        for view in self.views:
            if (view.component, view.stream) == (component, stream):
                return view
        return None
