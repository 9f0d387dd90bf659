"""Whole jobs: what goes in and must come out, the sides that do them, and how these are measured."""
