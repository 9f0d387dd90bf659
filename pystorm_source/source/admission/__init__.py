"""How much a micro-batch reads: the user's limits, and the admission controller. Pure.

``limits`` cuts the backlog to the limits and to a budget. ``controller`` makes that budget from ``rate_samples`` (the
tasks' reports), ``rate_estimator``, ``overhead`` (the cost outside the tasks), ``trigger_interval``, ``task_schedule``
and ``batch_budget``. ``saved_state`` is the controller's state in an offset.
"""

__all__: list[str] = []
