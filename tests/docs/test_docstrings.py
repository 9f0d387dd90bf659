"""What ``help()`` tells of everything public: each argument with its type, what is returned and raised, an example that
is run.

The style is Google's: ``Args:``, ``Returns:``, ``Raises:``, ``Attributes:``, ``Example:``. An override without a
docstring has that of the method that it overrides, and one that has its own need not repeat the arguments. Examples
know the names of ``pystorm_source`` that need no Spark; those that name ``spark`` run on one.
"""

import ast
import builtins
import doctest
import functools
import importlib
import inspect
import re
from collections.abc import Iterator
from enum import Enum
from types import FunctionType, MethodDescriptorType, MethodType
from typing import Any, NamedTuple

import pytest
from docstring_parser import Docstring
from docstring_parser.google import parse

import pystorm_source
from pystorm_source import api, errors
from tests.of_all import of_all

ROOMS = (
    "pystorm_source",
    "pystorm_source.api",
    "pystorm_source.bolts",
    "pystorm_source.building",
    "pystorm_source.errors",
    "pystorm_source.exceptions",
    "pystorm_source.journal",
    "pystorm_source.observe",
    "pystorm_source.data_sources",
    "pystorm_source.spouts",
    "pystorm_source.spouts.files",
    "pystorm_source.spouts.kafka",
    "pystorm_source.states",
    "pystorm_source.testing",
    "pystorm_source.options.wait_strategy",
)
OURS = ("pystorm_source", "cython_core")
ROUTINES = (FunctionType, MethodType, MethodDescriptorType)
ABSTRACT = "must define"  # what a NotImplementedError says of a method that a subclass is to have


class Public(NamedTuple):
    """A public name, or a public method of a public class."""

    name: str
    object: Any
    owner: type | None  # of a method: the class by which it is reached

    def __str__(self) -> str:
        return self.name

    @property
    def docs(self) -> list[Docstring]:
        """Its docstring, and those of what it overrides; of a class, those of its bases and their constructors."""
        if self.owner is not None:
            method = self.object.__name__
            texts = [vars(base)[method].__doc__ for base in self.owner.__mro__ if method in vars(base) and ours(base)]
        elif isinstance(self.object, type):
            bases = [base for base in self.object.__mro__ if ours(base)]
            texts = [base.__doc__ for base in bases] + [base.__init__.__doc__ for base in bases if has_init(base)]
        else:
            texts = [self.object.__doc__]
        return [parsed(text) for text in texts if text]

    @property
    def signature(self) -> inspect.Signature:
        try:
            return inspect.signature(self.object)
        except ValueError:  # compiled: it is the first line of the docstring
            line = signature_line(self.object.__doc__)
            assert line is not None, f"{self.name} has no signature"
            names: dict[str, Any] = {}
            exec(f"def made{line[line.index('(') :]}: ...", {"SYSTEM_COMPONENT": "__system"}, names)
            return inspect.signature(names["made"])

    @property
    def parameters(self) -> list[inspect.Parameter]:
        return [
            each
            for each in self.signature.parameters.values()
            if each.name not in ("self", "cls") and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        ]


@functools.cache  # each is asked for by four tests, those of a base by more
def parsed(text: str) -> Docstring:
    return parse(unsigned(text))


def ours(thing: Any) -> bool:
    return thing.__module__.split(".")[0] in OURS


def has_init(cls: type) -> bool:
    return "__init__" in vars(cls) and bool(cls.__init__.__doc__)


def signature_line(text: str | None) -> str | None:
    """The signature that Cython puts before a docstring."""
    first = (text or "").split("\n", 1)[0]
    return first if re.fullmatch(r"[\w.]+\(.*\)(?: -> .*)?", first) else None


def unsigned(text: str) -> str:
    return inspect.cleandoc(text if signature_line(text) is None else text.partition("\n")[2])


def named() -> dict[str, Any]:
    """Every public class and function, once, under the first room that has it."""
    found: dict[str, Any] = {}
    for room in ROOMS:
        module = importlib.import_module(room)
        for name in getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]:
            thing = getattr(module, name)
            is_own = hasattr(module, "__all__") or getattr(thing, "__module__", None) == room
            is_told = isinstance(thing, type) or inspect.isroutine(thing)
            if is_own and is_told and not any(thing is other for other in found.values()):
                found[f"{room}.{name}"] = thing
    # What is told of a value is told by the errors: the rest of that module makes their messages.
    return {name: thing for name, thing in found.items() if thing.__module__ != errors.__name__ or is_error(thing)}


def is_error(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, BaseException)


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """Its public methods and properties that are defined here, its bases' too."""
    for name in dir(cls):
        if not name.startswith("_"):
            owner = next((base for base in cls.__mro__ if name in vars(base)), None)
            if owner is not None and ours(owner):
                yield name, vars(owner)[name]


def methods(cls: type) -> Iterator[tuple[str, Any]]:
    for name, member in members(cls):
        method = getattr(cls, name) if isinstance(member, (classmethod, staticmethod)) else member
        if isinstance(method, ROUTINES) and not is_error(cls):
            yield name, method


NAMED = [Public(name, thing, None) for name, thing in named().items()]
METHODS = list(
    {  # each once, by the first class that has it
        getattr(method, "__func__", method): Public(f"{each.name}.{name}", method, each.object)
        for each in reversed(NAMED)
        if isinstance(each.object, type)
        for name, method in methods(each.object)
    }.values()
)

each_name = of_all(NAMED)
each_callable = of_all(
    [each for each in [*NAMED, *METHODS] if not (isinstance(each.object, type) and issubclass(each.object, Enum))]
)


@each_callable
def test_each_argument_is_told_with_its_type_and_default(public):
    if is_error(public.object):
        return
    told = {told.arg_name: told for doc in reversed(public.docs) for told in doc.params}
    for parameter in public.parameters:
        assert parameter.name in told, f"`{parameter.name}` is not among the Args of {public.name}"
        text = told[parameter.name]
        assert text.type_name, f"`{parameter.name}` of {public.name} has no type: {parameter.name} (str): …"
        default = parameter.default
        if default is not parameter.empty and default is not None:
            assert repr(default) in text.description, f"`{parameter.name}` of {public.name}: Defaults to {default!r}."


@each_callable
def test_no_argument_is_told_that_is_none(public):
    if is_error(public.object):
        return
    told = {each.arg_name.lstrip("*") for doc in public.docs[:1] for each in doc.params if each.args[0] == "param"}
    assert told <= set(public.signature.parameters)


@each_callable
def test_what_it_returns_is_told(public):
    if isinstance(public.object, type) or public.signature.return_annotation in (None, "None", "NoReturn"):
        return
    if "NoReturn" in str(public.signature.return_annotation):
        return
    assert public.docs, f"{public.name} has no docstring"
    compiled = public.signature.return_annotation is inspect.Signature.empty
    whether = any((doc.short_description or "").startswith("Whether ") for doc in public.docs)
    assert compiled or whether or any(doc.returns for doc in public.docs), f"{public.name} has no Returns"


@each_callable
def test_what_it_raises_is_told(public):
    told = {each.type_name for doc in public.docs for each in doc.raises}
    for name in told:
        error = getattr(builtins, name or "", None) or getattr(errors, name or "", None)
        assert is_error(error), f"Raises of {public.name}: there is no {name}"
    assert raised(public) <= told, f"Raises of {public.name} lacks {sorted(raised(public) - told)}"


@of_all([each for each in NAMED if isinstance(each.object, type)])
def test_each_attribute_is_told(public):
    told = {each.arg_name for doc in public.docs for each in doc.params}
    for name, member in members(public.object):
        if isinstance(member, property) or inspect.isdatadescriptor(member):
            assert name in told or member.__doc__, f"{public.name}.{name}"


def test_lines_fit():
    for public in [*NAMED, *METHODS]:
        for line in unsigned(public.object.__doc__ or "").splitlines():
            assert len(line) <= 120, f"{public.name}: {line}"


# --- what a function raises: itself, the private functions of its module that it calls


def raised(public: Public) -> set[str]:
    """Names of exceptions in its ``raise`` statements; compiled code has no source to look at."""
    if is_error(public.object):
        return set()
    if isinstance(public.object, type):
        made = {"__init__", "__init_subclass__"} & vars(public.object).keys()
        return set().union(*(raised_in(public.object.__module__, public.object.__name__, name, set()) for name in made))
    name = public.object.__name__
    if public.owner is None:
        return raised_in(public.object.__module__, None, name, set())
    definer = next(base for base in public.owner.__mro__ if name in vars(base))
    return raised_in(definer.__module__, definer.__name__, name, set())


def raised_in(module: str, cls: str | None, function: str, seen: set[tuple[str, str | None, str]]) -> set[str]:
    if (module, cls, function) in seen:
        return set()
    seen.add((module, cls, function))
    definition = definition_of(module, cls, function)
    found: set[str] = set()
    for node in [] if definition is None else ast.walk(definition):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name):
            if node.exc.func.id[0].isupper() and ABSTRACT not in ast.unparse(node.exc):
                found.add(node.exc.func.id)
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if re.fullmatch(r"(self|cls)\._[a-z]\w*", called):
                found |= raised_in(module, cls, called.partition(".")[2], seen)
            elif re.fullmatch(r"_[a-z]\w*", called):
                found |= raised_in(module, None, called, seen)
    return found


@functools.cache
def body_of(module: str) -> list[ast.stmt] | None:
    try:
        return ast.parse(inspect.getsource(importlib.import_module(module))).body
    except (OSError, TypeError):
        return None


def definition_of(module: str, cls: str | None, function: str) -> ast.AST | None:
    body = body_of(module)
    if body is None:
        return None
    if cls is not None:
        body = next((node.body for node in body if isinstance(node, ast.ClassDef) and node.name == cls), [])
    return next((node for node in body if isinstance(node, ast.FunctionDef) and node.name == function), None)


# --- examples


def examples_of(public: Public) -> doctest.DocTest:
    text = unsigned(public.object.__doc__ or "")
    names = {name: getattr(pystorm_source, name) for name in api.__all__ if hasattr(pystorm_source, name)}
    # Classes of __main__ travel to Spark's processes by value.
    names |= {"__name__": "__main__"}
    return doctest.DocTestParser().get_doctest(text, names, public.name, public.name, None)


def needs_spark(public: Public) -> bool:
    return any(re.search(r"\bspark\b", example.source) for example in examples_of(public).examples)


def run(test: doctest.DocTest) -> None:
    told: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    runner.run(test, out=told.append)
    assert not told, "".join(told)


@each_name
def test_each_has_an_example(public):
    assert examples_of(public).examples, f"the docstring of {public.name} has no example"
    own = parse(unsigned(public.object.__doc__))
    assert own.examples, f"the example of {public.name} does not stand under `Example:`"


QUICK = [each for each in [*NAMED, *METHODS] if examples_of(each).examples and not needs_spark(each)]
ON_SPARK = [each for each in [*NAMED, *METHODS] if needs_spark(each)]


@pytest.mark.parametrize("public", QUICK, ids=lambda public: public.name)
def test_its_example_runs(public, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    run(examples_of(public))


@pytest.mark.campaign
@pytest.mark.spark
@pytest.mark.parametrize("public", ON_SPARK, ids=lambda public: public.name)
def test_its_example_runs_on_spark(public, spark, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    test = examples_of(public)
    test.globs["spark"] = spark
    run(test)
