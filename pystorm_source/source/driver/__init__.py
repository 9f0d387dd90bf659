"""Runs on the driver: what Spark asks of a reader, the spouts that it asks in turn, ranges, progress."""

__all__: list[str] = []
