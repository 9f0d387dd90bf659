from typing_extensions import disjoint_base

from cython_core.routing.component_base import SpoutBase

@disjoint_base
class CompiledSpout(SpoutBase):
    def next_tuple(self) -> bool | None: ...
