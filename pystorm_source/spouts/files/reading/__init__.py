"""The task's side: the lines or the rows of one byte range."""

__all__: list[str] = []
