"""From a task back to the driver: a task's report, its sending and its receipt; and the driver's questions to tasks."""

__all__: list[str] = []
