"""Spouts that read pages of an HTTP API: ``HttpSpout``."""

from pystorm_source.spouts.http.spout import HttpSpout

__all__ = ["HttpSpout"]
