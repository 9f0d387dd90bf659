"""The command ``pystorm-source``, a file for each of its sub-commands.

``show/`` is the demo's, ``displays/`` those of run and tune, ``migration/`` that of migrate. What prints pages of
the documents from the commands and options lies in ``docs/``.
"""

__all__: list[str] = []
