"""A journal around any spout without offsets: what Spark can replay. ``spout`` begins, ``log`` draws the folder."""

__all__: list[str] = []
