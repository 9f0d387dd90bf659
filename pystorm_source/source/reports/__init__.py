"""The way back from a task to the driver: what a task reports, how it is sent, received and added up."""

__all__: list[str] = []
