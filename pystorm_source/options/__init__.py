"""Every key that a user sets: the tables of the source and of the engine, and the one way to read them."""

from pystorm_source.options.engine import (
    LINT_CODES,
    LOG_LEVELS,
    TABLES,
    EngineOptions,
    Options,
    SourceOptions,
    check_known,
    family_of,
    fields_of,
    meaning_of,
    parse,
    shown,
)

__all__ = [
    "LINT_CODES",
    "LOG_LEVELS",
    "TABLES",
    "EngineOptions",
    "Options",
    "SourceOptions",
    "check_known",
    "family_of",
    "fields_of",
    "meaning_of",
    "parse",
    "shown",
]
