"""How much a micro-batch reads: the user's limits, and a controller that measures it out. Pure but for the clock.

``limits`` cuts what waits by the limits and by a budget. ``controller`` makes that budget out of ``rate_samples`` (what
tasks report), ``rate_estimator``, ``overhead`` (what a micro-batch costs besides), ``trigger_interval``,
``task_schedule`` and ``batch_budget``. ``saved_state`` is what an offset remembers of it.
"""

from pystorm_source.source.admission.batch_budget import BatchBudget
from pystorm_source.source.admission.controller import AdmissionController
from pystorm_source.source.admission.limits import UNBOUNDED, Align, Limits, admit, limits_of
from pystorm_source.source.admission.rate_estimator import Reason
from pystorm_source.source.admission.rate_samples import Report
from pystorm_source.source.admission.saved_state import section_of, state_of

__all__ = [
    "UNBOUNDED",
    "AdmissionController",
    "Align",
    "BatchBudget",
    "Limits",
    "Reason",
    "Report",
    "admit",
    "limits_of",
    "section_of",
    "state_of",
]
