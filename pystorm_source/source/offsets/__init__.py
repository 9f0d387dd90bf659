"""What Spark keeps of a query: offsets, and what lies between two of them. Pure."""

__all__: list[str] = []
