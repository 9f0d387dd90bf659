"""The messaging core: queues, batches, routing, executors and row-to-Arrow building, compiled by Cython.

Knows no Spark, no topology DSL and no YAML; imports nothing else of this project.
"""
