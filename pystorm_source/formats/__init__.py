"""Bytes become rows or Arrow columns: lines, CSV and NDJSON of files, JSON and Avro of records. Knows no spout."""

__all__: list[str] = []
