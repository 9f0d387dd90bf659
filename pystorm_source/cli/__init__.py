"""The command ``pystorm-source``, with a file for each sub-command.

``show/`` belongs to demo, ``displays/`` to run and tune, ``migration/`` to migrate. ``docs/`` has the programs that
print the documents' pages of commands and options.
"""

__all__: list[str] = []
