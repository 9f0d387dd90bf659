"""The command ``pystorm-source``, a file for each of its sub-commands, and ``option_pages``, which prints pages."""

__all__: list[str] = []
