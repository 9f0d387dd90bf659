"""How a query is told to read as much as its limits let it, however slow the machine."""

UNCONTROLLED = {"batch.target.millis": 600_000, "backpressure.initialRate": 1_000_000_000}
"""Options of ours with which tasks report, and micro-batches are as large as the other limits let them be."""
