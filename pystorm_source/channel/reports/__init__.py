"""The way back from a task to the driver: a task's report, its sending and its receipt; and questions back."""

__all__: list[str] = []
