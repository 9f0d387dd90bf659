"""Crosses to a task, and runs there: a range of one partition, read to its end."""

__all__: list[str] = []
