"""Among how many processes a Spark task divides its fixed share of a rate limit."""

from pystorm_source.plan.plan import ComponentPlan, Plan


def permit_parts(plan: Plan, component: str = "") -> dict[str, int]:
    """By limit, the number of processes of one task that may take its permits, for a process that may; a limit that
    this one may not take is left out. ``component``: the one whose child process it is, empty for the task's own.

        lines ─► parse, processes=2 ─► ask, processes=3, takes "api"     each process of ask: {"api": 3}
                                                                         all others: {}
    """
    found = {}
    for name in plan.options.limits:
        takers = [each for each in plan.components if _may_take(each, name)]
        # If no component says that it takes permits, one in the task's own process may still do so, by a function
        # that is elsewhere.
        is_here = not takers or any(not each.processes for each in takers)
        if is_here if not component else any(each.name == component for each in takers):
            found[name] = int(is_here) + sum(len(each.groups) for each in takers)
    return found


def _may_take(component: ComponentPlan, limit: str) -> bool:
    return component.takes_permits or limit in component.options.bolt_limit_names
