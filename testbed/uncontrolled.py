"""Options that make a query read as much as its limits allow, even on a slow machine."""

UNCONTROLLED = {"batch.target.millis": 600_000, "backpressure.initialRate": 1_000_000_000}
"""Options of this package: tasks report, and micro-batches are as large as the other limits allow."""
