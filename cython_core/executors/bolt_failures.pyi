from typing import Any

from typing_extensions import disjoint_base

from cython_core.executors.executor import Executor

@disjoint_base
class BoltFailures(Executor):
    rules: Any
