"""The ground of every door that Spark has to this package."""

__all__: list[str] = []
