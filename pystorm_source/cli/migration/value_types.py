"""The types of values, and what operations make of them.

Types of scalars are DDL: "string", "long", "double", "boolean", "binary". Those of containers are tuples: ("list", of
what), ("dict", keys, values), ("tuple", of what, ...), and ("values", (name, type), ...) for the values of a tuple.
``None`` is anything: one unknown part makes the whole unknown. EMPTY is the type of nothing, such as of the elements
of []: it adds nothing to what it is joined with.
"""

import ast
from typing import Any

Type = Any
EMPTY = ("empty",)
NULL = ("null",)
NUMBERS = ("long", "double")

FUNCTIONS: dict[str, Type] = {
    **dict.fromkeys(("len", "int", "ord", "hash", "id"), "long"),
    **dict.fromkeys(("str", "repr", "chr", "hex", "bin", "oct", "format", "ascii"), "string"),
    "float": "double",
    "bool": "boolean",
    "isinstance": "boolean",
    "any": "boolean",
    "all": "boolean",
    "range": ("list", "long"),
    "os.getpid": "long",
    "time.time": "double",
    "time.monotonic": "double",
    "random.random": "double",
    "random.uniform": "double",
    "random.randint": "long",
    "random.randrange": "long",
    "json.dumps": "string",
    "simplejson.dumps": "string",
    "collections.Counter": ("dict", EMPTY, "long"),
    "dict": ("dict", EMPTY, EMPTY),
}
OF_ELEMENTS = {
    "list",
    "tuple",
    "set",
    "frozenset",
    "sorted",
    "iter",
    "reversed",
    "itertools.cycle",
    "collections.deque",
}
AN_ELEMENT = {"next", "min", "max", "random.choice"}
NOT_CHANGING = {*FUNCTIONS, *OF_ELEMENTS, *AN_ELEMENT, "enumerate", "zip", "sum", "print"}
_TO_STRING = """
strip lstrip rstrip lower upper title capitalize swapcase casefold replace format join zfill center ljust rjust
expandtabs translate removeprefix removesuffix
"""
_TO_BOOLEAN = "startswith endswith isdigit isalpha isalnum isspace islower isupper"
METHODS: dict[str, dict[str, Type]] = {
    "string": {
        **dict.fromkeys(_TO_STRING.split(), "string"),
        **dict.fromkeys(("split", "rsplit", "splitlines"), ("list", "string")),
        **dict.fromkeys(("partition", "rpartition"), ("tuple", "string", "string", "string")),
        **dict.fromkeys(_TO_BOOLEAN.split(), "boolean"),
        **dict.fromkeys(("find", "rfind", "index", "rindex", "count"), "long"),
        "encode": "binary",
    },
    "binary": {"decode": "string", "hex": "string"},
}


def joined(types: list[Type]) -> Type:
    """The one type that all have; EMPTY of none; None if they differ. A null fits any type: columns take it."""
    found: Type = EMPTY
    for each in types:
        if each is None:
            return None
        if each in (EMPTY, NULL) or each == found:
            found = each if found == EMPTY else found
        elif found in (EMPTY, NULL):
            found = each
        elif isinstance(each, tuple) and isinstance(found, tuple) and each[0] == found[0] and len(each) == len(found):
            if each[0] == "values":
                return None
            found = (each[0], *(joined([a, b]) for a, b in zip(each[1:], found[1:], strict=True)))
        else:
            return None
    return found


def holding(kind: str, *inner: Type) -> Type:
    """The type of a container. Of scalars and tuples of them alone: a container inside could change unseen."""
    return (kind, *(None if isinstance(each, tuple) and each[0] in ("list", "dict") else each for each in inner))


def column_type(found: Type) -> str | None:
    """The type of a column in Spark; None if it is not certain."""
    if isinstance(found, str):
        return found
    if isinstance(found, tuple) and found[0] == "list" and isinstance(found[1], str):
        return f"array<{found[1]}>"
    return None


def operated(left: Type, op: ast.operator, right: Type) -> Type:
    if left == EMPTY or right == EMPTY:
        other = right if left == EMPTY else left
        if isinstance(op, ast.Div) and other in (*NUMBERS, EMPTY):
            return "double"
        return other if other in (*NUMBERS, "string", EMPTY) else None
    if left == "string" and isinstance(op, ast.Mod):
        return "string"
    if left == right == "string" and isinstance(op, ast.Add):
        return "string"
    if left in NUMBERS and right in NUMBERS:
        if isinstance(op, ast.Div) or "double" in (left, right):
            return "double"
        # A negative power of an int is a float.
        return None if isinstance(op, ast.Pow) else "long"
    return None


def element(found: Type) -> Type:
    if found == "string":
        return "string"
    if not isinstance(found, tuple):
        return None
    if found[0] in ("list", "dict"):
        return found[1]
    if found[0] == "tuple":
        return joined(list(found[1:]))
    return None
