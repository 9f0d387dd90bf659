from cython_core.routing.output_collector import SpoutBase

class CompiledSpout(SpoutBase):
    def next_tuple(self) -> bool | None: ...
