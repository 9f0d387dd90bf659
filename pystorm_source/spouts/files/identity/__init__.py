"""What driver and task both know of a file: where it is, what it is known by, what is in it and how far it is whole."""

__all__: list[str] = []
