"""Lines over one axis, drawn with what a notebook has installed: matplotlib, Altair, or as a table."""

import base64
import importlib.util
import io
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from pystorm_source.errors import OptionError, given
from pystorm_source.types.html_table import html_table

INCHES = (8.0, 1.7)
"""Size of a panel. Wider: it leaves the page of a notebook. Higher: three panels leave the screen."""


class Chart:
    """Panels one above the other with a line each, over a common axis; a notebook whose cell ends in it shows it.

    matplotlib draws it if installed, otherwise Altair; without both, it is a table. Its text is the numbers, too.

    Args:
        title (str): a line above it.
        axis (str): what the points are, such as "micro-batch".
        at (Sequence[float]): the points' places on the axis.
        panels (Mapping[str, Sequence[float | None]]): name → a value for each point; None leaves a gap.

    Raises:
        OptionError: a panel has more or fewer values than there are points, or there is no panel.

    Example:
        >>> from pystorm_source.observe import Chart
        >>> Chart("twice", "n", [1, 2], {"2 n": [2, 4]})
        twice
        n  2 n
        1  2
        2  4
    """

    def __init__(self, title: str, axis: str, at: Sequence[float], panels: Mapping[str, Sequence[float | None]]):
        wrong = {name: len(values) for name, values in panels.items() if len(values) != len(at)}
        if wrong or not panels:
            raise OptionError(
                f"panels of a Chart have a value for each of the {len(at)} points, and there is at least one. "
                f"Given: {given(wrong)}",
                code="PYSTORM_INVALID_OPTION",
            )
        self._title = title
        self._axis = axis
        self._at = list(at)
        self._panels = {name: list(values) for name, values in panels.items()}

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Asked by a notebook."""
        if _is_there("matplotlib"):
            return {"text/html": self._image(), "text/plain": repr(self)}
        if _is_there("altair"):
            return {**self._altair()._repr_mimebundle_(), "text/plain": repr(self)}
        return {"text/html": self._table(), "text/plain": repr(self)}

    def __repr__(self) -> str:
        head, *rows = [[self._axis, *self._panels], *([_text(value) for value in row] for row in self._rows())]
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in (head, *rows)
        ]
        return "\n".join([self._title, *lines])

    def _rows(self) -> list[tuple[float | None, ...]]:
        return list(zip(self._at, *self._panels.values(), strict=True))

    def _table(self) -> str:
        cells = [[_text(value) for value in row] for row in self._rows()]
        return html_table(self._title, (self._axis, *self._panels), cells)

    def _image(self) -> str:
        from matplotlib.figure import Figure  # not pyplot, which keeps every figure and has its own state

        figure = Figure(figsize=(INCHES[0], INCHES[1] * len(self._panels) + 0.6), layout="constrained")
        figure.suptitle(_literal(self._title))
        axes: Any = figure.subplots(len(self._panels), sharex=True, squeeze=False)[:, 0]
        for axis, (name, values) in zip(axes, self._panels.items(), strict=True):
            axis.plot(self._at, [float("nan") if value is None else value for value in values], marker="o", ms=3)
            axis.set_ylabel(_literal(name))
            axis.set_ylim(bottom=min([0.0, *(value for value in values if value is not None)]))
            axis.grid(alpha=0.3)
        axes[-1].set_xlabel(_literal(self._axis))
        png = io.BytesIO()
        figure.savefig(png, format="png", dpi=80)
        data = base64.b64encode(png.getvalue()).decode()
        return f'<img style="max-width: 100%" alt="{escape(repr(self))}" src="data:image/png;base64,{data}">'

    def _altair(self) -> Any:
        import altair

        parts = []
        for name, values in self._panels.items():
            points = [{"x": x, "y": y} for x, y in zip(self._at, values, strict=True)]
            lines = altair.Chart(altair.Data(values=points)).mark_line(point=True)
            x = altair.X("x:Q", title=self._axis)
            parts.append(lines.encode(x=x, y=altair.Y("y:Q", title=name)).properties(width=600, height=110))
        return altair.vconcat(*parts, title=self._title)


def _is_there(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ValueError:  # it is None in sys.modules
        return False


def _literal(text: str) -> str:
    """Escapes dollar signs: matplotlib reads the text between two of them as mathematics."""
    return text.replace("$", r"\$")


def _text(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
