"""Topologies that the tests run through Spark."""

from pystorm_source import Topology
from pystorm_source.spouts import FilesSpout


class Logs(Topology):
    lines = FilesSpout.spec()
