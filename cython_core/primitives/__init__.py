"""Atomics, waiting and waking, mixing of bits, histograms: what every room may use, and knows no other one."""
