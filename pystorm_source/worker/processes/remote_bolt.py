"""Represents a bolt in the parent of its process, where none of its methods is called."""

from cython_core.tuples.tuple import Tuple
from pystorm_source.api.bolt import Bolt
from pystorm_source.plan.plan import ComponentPlan


class RemoteBolt(Bolt):
    """Has the attributes that the engine reads from an instance. Only the child builds and initialises the bolt."""

    @classmethod
    def of(cls, component: ComponentPlan) -> "RemoteBolt":
        """For a placed component."""
        made = cls()
        made._pystorm_options = component.options
        made.exit_on_exception = getattr(component.cls, "exit_on_exception", True)
        return made

    def process(self, tup: Tuple) -> None:
        """Never called."""
        raise NotImplementedError
