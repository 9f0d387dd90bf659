"""What a query did in a micro-batch, as frozen records that JSON can represent. Knows neither Spark nor the engine."""

__all__: list[str] = []
