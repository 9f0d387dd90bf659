"""A plan with offsets around its replayable spouts."""

from dataclasses import replace

from pystorm_source.api.cursor_spout import CursorSpout
from pystorm_source.api.replayed_cursors import ReplayedCursors
from pystorm_source.plan import Plan


def with_replays(plan: Plan) -> Plan:
    """``plan`` with ``ReplayedCursors`` around each ``CursorSpout`` that is replayable."""
    components = tuple(
        replace(component, wrapper=ReplayedCursors)
        if issubclass(component.cls, CursorSpout) and component.cls.replayable
        else component
        for component in plan.components
    )
    return replace(plan, components=components)
