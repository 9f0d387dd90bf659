"""What ``benchmarks scale`` measures: how a cost grows with one size, all else equal."""
