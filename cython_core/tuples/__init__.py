"""The tuple that bolts get, and the named values that it carries."""
