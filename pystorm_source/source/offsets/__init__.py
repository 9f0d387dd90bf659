"""The offsets that Spark keeps for a query, and the ranges between two of them. Pure."""
