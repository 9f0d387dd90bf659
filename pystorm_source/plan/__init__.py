"""A topology becomes frozen, picklable data, and is checked on the way."""

from pystorm_source.plan.compile import compile_plan, load_topology
from pystorm_source.plan.lint import Finding, lint
from pystorm_source.plan.meeting import check_meetings
from pystorm_source.plan.plan import ComponentPlan, EdgePlan, Plan

__all__ = ["ComponentPlan", "EdgePlan", "Finding", "Plan", "check_meetings", "compile_plan", "lint", "load_topology"]
