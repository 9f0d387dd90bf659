"""Type names of Arrow, pandas, numpy and Python, and what Spark calls them: for the remedies of ``grammar``."""

import re

SPARKS = {
    "bool": "boolean",
    "bool_": "boolean",
    "int8": "tinyint",
    "uint8": "smallint",
    "int16": "smallint",
    "uint16": "int",
    "int32": "int",
    "uint32": "long",
    "int64": "long",
    "uint64": "decimal(20,0)",
    "float16": "float",
    "float32": "float",
    "float64": "double",
    "halffloat": "float",
    "str": "string",
    "text": "string",
    "utf8": "string",
    "large_utf8": "string",
    "large_string": "string",
    "string_view": "string",
    "category": "string",
    "dictionary": "string",
    "uuid": "string",
    "object": "string",
    "bytes": "binary",
    "bytearray": "binary",
    "large_binary": "binary",
    "binary_view": "binary",
    "date32": "date",
    "date64": "date",
    "datetime": "timestamp",
    "datetime64": "timestamp",
    "timestamptz": "timestamp",
    "timedelta": "interval day to second",
    "timedelta64": "interval day to second",
    "duration": "interval day to second",
    "decimal128": "decimal(10,2)",
    "decimal256": "decimal(10,2)",
    "list": "array<string>",
    "tuple": "array<string>",
    "set": "array<string>",
    "large_list": "array<string>",
    "dict": "map<string,string>",
    "none": "void",
    "null": "void",
}
"""Lower-cased name → Spark's; an example for types that contain others."""

LONGEST = 200
"""Characters of the longest text that is searched. More: the search in a huge text takes too long."""

_NULLABLE = (
    re.compile(r"(?:typing\.)?optional\s*\[(?P<type>.*)\]", re.I | re.DOTALL),
    re.compile(r"(?P<type>.*?)\s*(?:\||\bor\b)\s*(?:null|none|nil)", re.I | re.DOTALL),
    re.compile(r"(?:null|none|nil)\s*(?:\||\bor\b)\s*(?P<type>.*)", re.I | re.DOTALL),
    re.compile(r"(?P<type>.*?)\s*\?", re.DOTALL),
    re.compile(r"(?P<type>.*?)\s+(?:null|nullable|optional|default\s+null)", re.I | re.DOTALL),
    re.compile(r"(?:nullable|optional)\s+(?P<type>.*)", re.I | re.DOTALL),
)
_NAME = re.compile(r"\s*(?:[a-z]+\.)?(?P<name>\w+)", re.I)


def without_null(text: str) -> str:
    """The type inside another language's spelling of "may be null": ``int`` of ``int | null``; otherwise empty."""
    for form in _NULLABLE if len(text) <= LONGEST else ():
        if match := form.fullmatch(text.strip()):
            inner = match["type"].strip()
            return SPARKS.get(inner.lower(), inner)
    return ""


def sparks_name(text: str) -> str:
    """Spark's name for the foreign type whose name the text begins with; otherwise empty."""
    match = _NAME.match(text)
    if match is None:
        return ""
    name = match["name"].lower()
    return SPARKS.get(name) or (name if name.startswith("timestamp") and "[" in text else "")
