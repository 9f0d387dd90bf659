"""Rows become Arrow record batches: converters, column memory, lossless casts."""
