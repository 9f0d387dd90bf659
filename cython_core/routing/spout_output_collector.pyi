from typing import final

from cython_core.routing.output_collector import OutputCollector

@final
class SpoutOutputCollector(OutputCollector):
    @property
    def rooted(self) -> int: ...
    @property
    def untracked(self) -> int: ...
