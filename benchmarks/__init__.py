"""The ladder of measures: ``python -m benchmarks --list``. A benchmark is not a test: it prints what it saw."""
