"""Rings of frames between processes, and the doorbells that wake a process for them."""
