"""The driver's side: which files there are, which of them are the same as before, and how far each can be read."""

__all__: list[str] = []
