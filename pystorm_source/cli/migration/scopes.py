"""Functions of a component, or its files, as the places where names get values."""

import ast
from collections.abc import Iterator

from pystorm_source.cli.migration.python_files import PythonFile
from pystorm_source.cli.migration.value_types import NOT_CHANGING

READING = {"get", "items", "keys", "values", "most_common", "count", "index", "copy", "elements", "total"}


class Scope:
    """One of them. ``names``, ``own``: name → its uses, and those of ``self.name``; ``parents``: node → its parent."""

    def __init__(self, file: PythonFile, node: ast.AST, method: str = ""):
        self.file = file
        self.node = node
        self.method = method
        self.parents: dict[ast.AST, ast.AST] = {}
        self.names: dict[str, list[ast.Name]] = {}
        self.own: dict[str, list[ast.Attribute]] = {}
        self.redefined: set[str] = set()
        """Names that a function within takes, or that get something other than a value."""
        for each in ast.walk(node):
            self.parents |= dict.fromkeys(ast.iter_child_nodes(each), each)
            if isinstance(each, ast.Name):
                self.names.setdefault(each.id, []).append(each)
            elif isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id == "self":
                self.own.setdefault(each.attr, []).append(each)
            elif isinstance(each, (ast.Global, ast.Nonlocal)):
                self.redefined |= set(each.names)
            elif isinstance(each, (ast.MatchAs, ast.MatchStar)):
                self.redefined.add(each.name or "")
            elif isinstance(each, ast.MatchMapping):
                self.redefined.add(each.rest or "")
            elif isinstance(each, (ast.FunctionDef, ast.Lambda, ast.ClassDef)) and each is not node:
                self.redefined |= set(arguments_of(each)) if not isinstance(each, ast.ClassDef) else set()
                self.redefined |= set() if isinstance(each, ast.Lambda) else {each.name}
            elif isinstance(each, (ast.ExceptHandler, ast.alias)) and not isinstance(node, ast.Module):
                self.redefined.add((each.asname or each.name if isinstance(each, ast.alias) else each.name) or "")


def arguments_of(function: ast.FunctionDef | ast.Lambda) -> list[str]:
    """The names of all its arguments, in order."""
    given = function.args
    more = [each for each in (given.vararg, given.kwarg) if each]
    return [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs, *more)]


def nodes_of(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Its nodes, without those of functions within."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            yield child
            yield from nodes_of(child)  # type: ignore[arg-type]


def function_name(file: PythonFile, node: ast.expr) -> str:
    """``len``, ``collections.Counter``: a function that is built in or imported; "" if the file defines it."""
    if isinstance(node, ast.Name) and node.id not in file.imported:
        return "" if node.id in file.bound else node.id
    return file.full_name(node)


def escapes(use: ast.expr, scope: Scope) -> bool:
    """Whether the object may get a second name, by which it may be changed."""
    parent = scope.parents.get(use)
    if isinstance(parent, ast.Call) and use in parent.args:
        return function_name(scope.file, parent.func) not in NOT_CHANGING
    reads = (ast.Subscript, ast.For, ast.comprehension, ast.Compare, ast.FormattedValue, ast.Attribute)
    return not isinstance(parent, (*reads, ast.BinOp, ast.UnaryOp, ast.If, ast.While, ast.Expr))


def is_changed(use: ast.expr, scope: Scope) -> bool:
    """Whether this use changes the object: an element is stored, or a method called that may do so."""
    parent = scope.parents.get(use)
    if isinstance(parent, ast.Subscript):
        return not isinstance(parent.ctx, ast.Load)
    return isinstance(parent, ast.Attribute) and parent.attr not in READING
