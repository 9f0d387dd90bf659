"""Spark's names of types (``bigint``, ``array<string>``): their one grammar, and the Arrow types that they name."""

__all__: list[str] = []
