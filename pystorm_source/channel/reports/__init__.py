"""The way back from a task to the driver: a task's report, its sending, its receipt and the sum of all."""

__all__: list[str] = []
