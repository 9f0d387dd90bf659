"""The Input of a plan: what makes it an operator over a DataFrame, not a source."""

from pystorm_source.api.input import Input, not_a_source
from pystorm_source.errors import TopologyError
from pystorm_source.plan.plan import ComponentPlan, Plan


def input_of(plan: Plan) -> ComponentPlan | None:
    """Returns the component that is the input; None if the plan is a source's.

    Raises TopologyError if there is another spout beside it.
    """
    inputs = [spout for spout in plan.spouts if issubclass(spout.cls, Input)]
    if inputs and len(plan.spouts) > 1:
        raise TopologyError(
            "a topology with an Input has no other spout, nor a second Input: join DataFrames before apply(), or read "
            f"the spouts as a source of their own. Given: {[spout.name for spout in plan.spouts]!r}",
            code="PYSTORM_INVALID_TOPOLOGY",
        )
    return inputs[0] if inputs else None


def refuse_input(plan: Plan) -> None:
    """Raises TopologyError if the plan is not a source's."""
    if input_of(plan) is not None:
        raise not_a_source(plan.name)
