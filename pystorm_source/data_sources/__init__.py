"""Python data sources of Spark's as spouts. Importing this room imports pyspark."""

from pystorm_source.data_sources.spout import DataSourceSpout

__all__ = ["DataSourceSpout"]
