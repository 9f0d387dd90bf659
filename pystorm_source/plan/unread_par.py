"""A ``par`` in a configuration, where it is no number of tasks."""

from collections.abc import Mapping
from typing import Any

from pystorm_source.errors import OptionError
from pystorm_source.options.misplaced_par import remedy_of_par
from pystorm_source.plan.lint import is_named_in_source
from pystorm_source.plan.plan import Plan


def refuse_unread_par(plan: Plan) -> None:
    """Raises OptionError for the key ``par`` in a configuration, unless the source of a component names it: then it is
    the user's own key."""
    for name, config in [(plan.name, plan.config), *((each.name, each.config) for each in plan.components)]:
        _refuse(name, dict(config), plan)


def _refuse(name: str, config: Mapping[str, Any], plan: Plan) -> None:
    if "par" not in config or any(
        is_named_in_source(each.cls, f"{quote}par{quote}") for each in plan.components for quote in ("'", '"')
    ):
        return
    raise OptionError(
        f"config of {name!r} sets 'par', which nothing reads there: {remedy_of_par('par', config['par'])}",
        code="PYSTORM_UNKNOWN_OPTION",
    )
