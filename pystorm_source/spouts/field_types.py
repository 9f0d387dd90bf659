"""Families of Spark's DDL types, as far as text formats tell them apart."""

_FAMILIES = {
    "string": "string",
    "tinyint": "integer",
    "byte": "integer",
    "smallint": "integer",
    "short": "integer",
    "int": "integer",
    "integer": "integer",
    "bigint": "integer",
    "long": "integer",
    "float": "float",
    "real": "float",
    "double": "float",
    "boolean": "boolean",
    "decimal": "decimal",
    "dec": "decimal",
    "numeric": "decimal",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ltz": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    "binary": "binary",
}


def family_of(ddl: str | None) -> str | None:
    """One of the families above; None for no type or one that text does not have."""
    if ddl is None:
        return None
    head = ddl.strip().lower().replace("(", " ").split()
    if head and head[0] in ("varchar", "char"):
        return "string"
    return _FAMILIES.get(head[0]) if head else None
