"""What ``pystorm-source run`` and ``tune`` show: tables, lines, and a log whose repeated lines are counted."""

__all__: list[str] = []
