"""Executors of spouts, bolts and async bolts: what one turn does."""
