"""A small table as HTML, for the output of a notebook's cell: its contents are text, never markup."""

from collections.abc import Iterable, Sequence
from html import escape

_LEFT = ' style="text-align: left"'


def html_table(caption: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Returns a table without scripts or style sheets. Numbers have separators and are aligned to the right.

    Args:
        caption (str): a line above it.
        head (Sequence[str]): names of the columns.
        rows (Iterable[Sequence[object]]): the cells, as many in each row as there are columns.

    Returns:
        str: a piece of HTML.

    Example:
        >>> html_table("<b>", ["n"], [[1000]])
        '<p>&lt;b&gt;</p><table><thead><tr><th>n</th></tr></thead><tbody><tr><td>1,000</td></tr></tbody></table>'
    """
    parts = [f"<p>{escape(caption)}</p><table><thead><tr>", *(f"<th>{escape(name)}</th>" for name in head)]
    parts.append("</tr></thead><tbody>")
    for row in rows:
        parts += ["<tr>", *map(_cell, row), "</tr>"]
    return "".join([*parts, "</tbody></table>"])


def _cell(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"<td>{value:,}</td>"
    return f"<td{_LEFT}>{escape(str(value))}</td>"
