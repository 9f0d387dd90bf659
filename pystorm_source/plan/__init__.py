"""A topology becomes frozen, picklable data, and is checked on the way."""

from pystorm_source.plan.compile import compile_plan, load_topology
from pystorm_source.plan.lint import Finding, lint
from pystorm_source.plan.plan import ComponentPlan, EdgePlan, Plan

__all__ = ["ComponentPlan", "EdgePlan", "Finding", "Plan", "compile_plan", "lint", "load_topology"]
