"""Runs on the driver: Spark's calls of a reader, the spouts that it calls, ranges, progress."""
