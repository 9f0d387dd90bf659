"""The streams that leave a worker as rows."""

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class ViewPlan:
    """One open stream as the output takes it.

    ``columns``: value i of the stream → output column. The others name the output column of a piece of metadata, -1 for
    none; output columns that nothing fills are null.
    """

    component: str
    stream: str
    columns: tuple[int, ...]
    component_column: int = -1
    stream_column: int = -1
    task_column: int = -1
    partition_column: int = -1
    offset_column: int = -1

    def constants(self, task: int) -> dict[int, object]:
        """Output column → its constant value in every row of this task."""
        given = {self.component_column: self.component, self.stream_column: self.stream, self.task_column: task}
        return {column: value for column, value in given.items() if column >= 0}


@dataclass(frozen=True)
class OutputPlan:
    """The rows of a worker: their exact Arrow schema, the streams they come from, rows per batch."""

    schema: pa.Schema
    views: tuple[ViewPlan, ...]
    batch_rows: int = 32_768

    def view(self, component: str, stream: str) -> ViewPlan | None:
        """The view of a stream, or None if its rows are not wanted."""
        for view in self.views:
            if (view.component, view.stream) == (component, stream):
                return view
        return None
