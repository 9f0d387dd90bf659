"""``EventStreamSpout``: server-sent events.

spout ─► connection (``options``) ─► parser ─► events
"""

from pystorm_source.spouts.events.spout import EventStreamSpout

__all__ = ["EventStreamSpout"]
