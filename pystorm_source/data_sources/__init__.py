"""Spark's Python data sources as spouts. Importing this room imports pyspark."""

from pystorm_source.data_sources.spout import DataSourceSpout

__all__ = ["DataSourceSpout"]
