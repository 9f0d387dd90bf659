from typing_extensions import disjoint_base

from cython_core.executors.bolt_ticks import BoltTicks

@disjoint_base
class BoltMany(BoltTicks): ...
