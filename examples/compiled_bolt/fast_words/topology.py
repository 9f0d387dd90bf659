"""lines → Split → Count, by word."""

from fast_words.bolts import Count, Split
from pystorm_source import Grouping, Topology
from pystorm_source.spouts import MemorySpout


class WordCount(Topology):
    """Counts the words of a few lines."""

    lines = MemorySpout.spec(fields=["line string"], rows=[["the cow jumped"], ["over the moon"], ["the end"]])
    split = Split.spec(inputs=[lines])
    count = Count.spec(inputs={split: Grouping.fields("word")})
