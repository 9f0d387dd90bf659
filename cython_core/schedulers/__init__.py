"""Whose turn it is: all executors in one thread, or a thread for each, and how long to wait without work."""
