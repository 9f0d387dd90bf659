"""Storm-style topologies in Python as a streaming data source for Spark."""

from pystorm_source.version import __version__ as __version__
