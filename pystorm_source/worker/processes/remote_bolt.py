"""What stands for a bolt in the parent of its process: no method of it is called there."""

from cython_core.tuples.tuple import Tuple
from pystorm_source.api.bolt import Bolt
from pystorm_source.plan.plan import ComponentPlan


class RemoteBolt(Bolt):
    """Has what the engine asks of an instance; the bolt itself is built and initialised in the child alone."""

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
