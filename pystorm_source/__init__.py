"""Storm-style topologies in Python as a streaming data source for Spark."""

__version__ = "0.1.0"
