"""The version of this distribution, in one place: ``pyproject.toml`` and ``setup.py`` read it from here."""

__version__ = "0.1.0"
