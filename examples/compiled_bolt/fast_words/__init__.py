"""A word count whose bolts are compiled by Cython."""
