"""The acker: which spout tuples are wholly processed, and which attempts of them have failed."""
