"""The partitions of all spouts, in order: the meaning of row i of a column.

Planning works on columns, numpy arrays of int64 with a row per partition, so that a hundred thousand partitions take
milliseconds. Rows are sorted by spout, then by name. Names are looked up once, when a column is made from a section of
an offset (spout → partition → offset), and written once, when a column becomes a section.
"""

from collections.abc import Mapping
from itertools import repeat
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pystorm_source.source.offsets.offsets import Key, Section, offsets_of

Column: TypeAlias = npt.NDArray[np.int64]
UNKNOWN = -1
"""In a column of offsets: a partition without an offset."""


class PartitionIndex:
    """``names``: spout → names of its partitions, sorted and without repetition. Immutable."""

    __slots__ = ("_slices", "names")

    def __init__(self, names: Mapping[str, tuple[str, ...]]):
        self.names = {component: names[component] for component in sorted(names)}
        self._slices: dict[str, slice] = {}
        row = 0
        for component, partitions in self.names.items():
            self._slices[component] = slice(row, row + len(partitions))
            row += len(partitions)

    def __len__(self) -> int:
        return sum(map(len, self.names.values()))

    def rows_of(self, component: str) -> slice:
        """The rows of a spout's partitions; empty if it has no partitions."""
        return self._slices.get(component, slice(0, 0))

    def key(self, row: int) -> Key:
        """The partition of a row. Raises IndexError."""
        for component, rows in self._slices.items():
            if rows.start <= row < rows.stop:
                return Key(component, self.names[component][row - rows.start])
        raise IndexError(row)

    def keys(self) -> list[Key]:
        """The partitions of all rows."""
        return [Key(component, name) for component, partitions in self.names.items() for name in partitions]

    def column(self, section: Section, otherwise: int = UNKNOWN) -> Column:
        """The offsets of a section, ``otherwise`` for partitions that it does not name."""
        column = np.full(len(self), otherwise, np.int64)
        for component, partitions in self.names.items():
            offsets = section.get(component)
            if offsets:
                found = offsets_of(partitions, offsets, repeat(otherwise))
                column[self.rows_of(component)] = np.fromiter(found, np.int64, len(partitions))
        return column

    def section(self, column: Column) -> dict[str, dict[str, int]]:
        """A column as the section of an offset. Spouts without partitions are left out."""
        return {
            component: dict(zip(partitions, column[self.rows_of(component)].tolist(), strict=True))
            for component, partitions in self.names.items()
            if partitions
        }

    def section_at(self, column: Column, rows: npt.NDArray[np.intp]) -> dict[str, dict[str, int]]:
        """The same for these rows only, in ascending order: for few rows."""
        section: dict[str, dict[str, int]] = {}
        for row, offset in zip(rows.tolist(), column[rows].tolist(), strict=True):
            key = self.key(row)
            section.setdefault(key.component, {})[key.partition] = offset
        return section


def total(column: npt.NDArray[Any]) -> int:
    """The sum, exact also beyond 64 bits."""
    return sum(column.tolist())
