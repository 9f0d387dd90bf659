"""Processes of a bolt: children that the worker forks, and the links to them."""
