"""A journal around any spout without offsets, so that Spark can replay it. Begin with ``spout``; ``log`` draws the
folder."""

__all__: list[str] = []
