"""Rings between threads, receive queues of tuples, batches towards them and the timer that flushes batches."""
