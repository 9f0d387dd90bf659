"""Runs one Plan in one task."""

from pystorm_source.worker.output import OutputPlan, ViewPlan
from pystorm_source.worker.worker import Worker

__all__ = ["OutputPlan", "ViewPlan", "Worker"]
