"""An output of a notebook's cell that is replaced in place."""

import sys
from typing import Any


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook: IPython's terminal shows no HTML."""
    if "IPython" not in sys.modules:
        return False
    shell = sys.modules["IPython"].get_ipython()
    return shell is not None and hasattr(shell, "kernel")


class CellOutput:
    """The output of the cell that runs now. A frontend that cannot show HTML, shows the text."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, html: str, text: str) -> None:
        """Shows it in the place of what was shown before; also from another thread, and when the cell has ended."""
        from IPython.display import display

        data = {"text/html": html, "text/plain": text}
        if self._handle is None:
            self._handle = display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)
