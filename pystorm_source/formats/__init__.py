"""Turns bytes into rows or Arrow columns: lines, CSV and NDJSON from files, JSON, Avro and Protobuf from records.
Knows no spout."""

__all__: list[str] = []
