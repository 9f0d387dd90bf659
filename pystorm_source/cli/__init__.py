"""The command ``pystorm-source``, a file for each of its sub-commands; ``show/``, ``displays/``, ``migration/``: theirs.

What prints pages of the documents from the commands and options lies in ``docs/``.
"""

__all__: list[str] = []
