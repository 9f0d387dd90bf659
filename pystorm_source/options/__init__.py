"""Every key that a user sets: the tables of the source and of the engine, and the one way to read them.

``table`` defines tables; ``storm_keys`` are Storm's keys without effect here; ``presets`` are ready-made values;
``duration`` and ``wait_strategy`` interpret the values of some keys. Import from here.
"""

from pystorm_source.options.engine import LINT_CODES, LOG_LEVELS, EngineOptions
from pystorm_source.options.source import SourceOptions
from pystorm_source.options.table import (
    Options,
    check_known,
    declared_by,
    family_of,
    fields_of,
    meaning_of,
    parse,
    shown,
)

TABLES: tuple[type[Options], ...] = (SourceOptions, EngineOptions)

__all__ = [
    "LINT_CODES",
    "LOG_LEVELS",
    "TABLES",
    "EngineOptions",
    "Options",
    "SourceOptions",
    "check_known",
    "declared_by",
    "family_of",
    "fields_of",
    "meaning_of",
    "parse",
    "shown",
]
