"""Ready-made bolts that work on columns, with pyarrow."""

from pystorm_source.bolts.combiner import CombinerBolt
from pystorm_source.bolts.filter import FilterBolt
from pystorm_source.bolts.project import ProjectBolt

__all__ = ["CombinerBolt", "FilterBolt", "ProjectBolt"]
