"""Processes of a bolt: children that the worker forks, and the links to them."""

__all__: list[str] = []
