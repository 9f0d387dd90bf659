"""A module for each benchmark, with ``run(settings)``; ``benchmarks.harness.ladder`` lists them."""
