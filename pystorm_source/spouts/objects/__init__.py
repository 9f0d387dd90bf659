"""``ObjectsSpout``: new objects under a prefix of an object store, by listing.

| driver | spout ─► discovery ─► ``listing`` (what is new), ``known``, ``log`` (what offsets mean), ``segment`` |
| task | spout ─► discovery (parts of a range) ─► ``fetching`` ahead ─► ``reading`` ─► ``rows`` |
| both | ``store``, ``options`` |
"""

from pystorm_source.spouts.objects.spout import ObjectsSpout

__all__ = ["ObjectsSpout"]
