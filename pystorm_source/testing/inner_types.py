"""Whether the values of inner streams, which bolts take, fit their declared types.

The engine passes such values on unchanged, and checks only what leaves the topology as rows. If a bolt emits ``"5"``
where it declares ``long``, nothing happens until another bolt computes with it, if ever.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import pyarrow as pa

from cython_core.arrow.row_error import row_error
from cython_core.arrow.value_converter import Misfit, converter
from pystorm_source.errors import TupleFailed
from pystorm_source.errors.conditions import Code
from pystorm_source.plan import Plan
from pystorm_source.types.arrow import field_type, nullable


class _Field(NamedTuple):
    place: int
    field: pa.Field
    convert: Any


class InnerTypes:
    """Checks the values of one run. Raises SchemaError if a declared type does not exist."""

    def __init__(self, plan: Plan):
        opened = {(component.name, stream.name) for component, stream in plan.open_streams}
        self._fields: dict[tuple[str, str], list[_Field]] = {}
        for component in plan.components:
            for stream in plan.streams_of(component):
                if (component.name, stream.name) not in opened:
                    label = f"{component.name}.{stream.name}"
                    typed = zip(range(len(stream.fields)), stream.fields, stream.types, strict=True)
                    self._fields[component.name, stream.name] = [
                        _field(place, name, ddl, label) for place, name, ddl in typed if ddl is not None
                    ]
        self._checked = dict.fromkeys(self._fields, 0)

    def check(self, rows: Mapping[tuple[str, str], Sequence[tuple[Any, ...]]]) -> None:
        """Checks the rows, by component and stream, that arrived since the last call.

        Raises TupleFailed for the first value that does not fit; its cause names field, value and row.
        """
        for stream, fields in self._fields.items():
            given = rows.get(stream, ())
            for row in given[self._checked[stream] :] if fields else ():
                for each in fields:
                    _check(each, row, *stream)
            self._checked[stream] = len(given)


def _field(place: int, name: str, ddl: str, label: str) -> _Field:
    field = pa.field(name, field_type(ddl, f"field {name!r} of {label}"), nullable(ddl, name))
    return _Field(place, field, converter(field.type, field.nullable))


def _check(each: _Field, row: tuple[Any, ...], component: str, stream: str) -> None:
    try:
        each.convert(row[each.place])
    except Misfit as misfit:
        cause = row_error(
            each.field, misfit.path, misfit.type, misfit.value, f"{component}.{stream}", misfit.reason, row
        )
        error = TupleFailed(
            f"component {component!r} has emitted a value that does not fit its declared type: emit one of that type, "
            f"or declare another type; run_topology(check_types=False) does not look. {cause}",
            code=cast("Code", cause.code),
        )
        error.component = component
        raise error from cause
