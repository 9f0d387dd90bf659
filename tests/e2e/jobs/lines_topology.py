"""Lines of files, as they are."""

from pystorm_source import Topology
from pystorm_source.spouts import FilesSpout


class Lines(Topology):
    lines = FilesSpout.spec()
