"""How much a micro-batch reads: the user's limits, and the admission controller. Pure except for the clock.

``limits`` cuts the backlog to the limits and to a budget. ``controller`` makes that budget from ``rate_samples`` (the
tasks' reports), ``rate_estimator``, ``overhead`` (the cost outside the tasks), ``trigger_interval``, ``task_schedule``
and ``batch_budget``. ``saved_state`` is the controller's state in an offset.
"""

from pystorm_source.source.admission.batch_budget import BatchBudget
from pystorm_source.source.admission.controller import AdmissionController, AdmissionState, initial_rates
from pystorm_source.source.admission.limits import Align, Limits, admit, limits_of
from pystorm_source.source.admission.rate_estimator import RateEstimator, Reason
from pystorm_source.source.admission.rate_samples import Report
from pystorm_source.source.admission.saved_state import section_of, state_of

__all__ = [
    "AdmissionController",
    "AdmissionState",
    "Align",
    "BatchBudget",
    "Limits",
    "RateEstimator",
    "Reason",
    "Report",
    "admit",
    "initial_rates",
    "limits_of",
    "section_of",
    "state_of",
]
