"""A table of options: every key with type, default, bounds and meaning, and the one way to read it.

``conf/defaults.yaml`` and ``docs/OPTIONS.md`` are printed from the tables (a test compares them). Options are read
once, into frozen objects that ``Plan`` and ``ReadRequest`` carry.
"""

import functools
import typing
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar

import msgspec
from msgspec import Meta

from pystorm_source.errors import LONGEST_GIVEN, OptionError, cut, given
from pystorm_source.errors.redaction import redacted
from pystorm_source.options.accepted import accepted, wrong_part
from pystorm_source.options.misplaced_par import remedy_of_par
from pystorm_source.options.near_key import near_key


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of option tables. A spout declares its options in a subclass, named by ``Spout.Options``.

    A field whose key ends with ``.*`` takes a family of keys, in a dict without the common prefix.
    """

    for_batches: ClassVar[frozenset[str]] = frozenset()
    """The keys that end a batch read: a stream refuses them."""
    common: ClassVar[tuple[str, ...]] = ()
    """The keys that most jobs use, in the order of the pages, which show them first."""
    further: ClassVar[tuple[str, ...]] = ()
    """The keys that few jobs use: the pages show them last."""
    usual: ClassVar[tuple[str, ...]] = ()
    """Well-known keys of its families: proposed if a key is near to one of them."""
    takes_json: ClassVar[frozenset[str]] = frozenset()
    """The keys whose text may be JSON: ``read_stream`` takes a dict for them."""

    def __repr__(self) -> str:
        values = (f"{each.name}={shown(key, getattr(self, each.name))}" for key, each in fields_of(type(self)).items())
        return f"{type(self).__qualname__}({', '.join(values)})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [(each.name, redacted(key, getattr(self, each.name))) for key, each in fields_of(type(self)).items()]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles only values that differ from their defaults, because a plan carries some into every task."""
        fields = fields_of(type(self)).values()
        values = ((each.name, each.default, getattr(self, each.name)) for each in fields)
        return _made, (type(self), {name: value for name, default, value in values if value != default})

    @classmethod
    def defaults_beside(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Field → default, for missing fields whose default depends on the ``given`` ones."""
        return {}


T = TypeVar("T", bound=Options)


def _made(table: type[T], values: dict[str, Any]) -> T:
    return table(**values)


def shown(key: str, value: Any) -> str:
    """Returns the value for messages and records, cut and without secrets."""
    return given(redacted(key, value))


# Too few: tables are reread in turn. Too many: tables from rerun notebook cells stay in memory.
@functools.lru_cache(maxsize=128)
def fields_of(table: type[Options]) -> Mapping[str, msgspec.structs.FieldInfo]:
    """Key → field of a table. Cached, because msgspec evaluates all annotations of the table at each call."""
    return MappingProxyType({field.encode_name: field for field in msgspec.structs.fields(table)})


class _Lookup(NamedTuple):
    """A field in the form that ``parse`` needs."""

    lowered: str
    key: str
    field: msgspec.structs.FieldInfo
    is_required: bool
    is_family: bool


@functools.lru_cache(maxsize=128)
def _lookups(table: type[Options]) -> tuple[_Lookup, ...]:
    """Returns the fields of a table. Cached, because a spout parses its own table in every worker."""
    return tuple(
        _Lookup(key.lower(), key, field, field.required, key.endswith(".*")) for key, field in fields_of(table).items()
    )


def family_of(key: str, families: Iterable[str]) -> str | None:
    """Returns the key such as ``kafka.*``, from these, whose family this key belongs to."""
    lowered = key.lower()
    for family in families:
        if family.endswith(".*") and lowered.startswith(family[:-1].lower()) and not lowered.endswith("*"):
            return family
    return None


def meaning_of(field: msgspec.structs.FieldInfo) -> str:
    """Returns a field's one-line meaning, or an empty text."""
    for meta in typing.get_args(field.type)[1:] if typing.get_origin(field.type) is Annotated else ():
        if isinstance(meta, Meta) and meta.description:
            return meta.description
    return ""


def declared_by(component: type) -> tuple[type[Options], ...]:
    """Returns the table that a component's class names in its attribute ``Options``, if any."""
    table = getattr(component, "Options", None)
    return (table,) if isinstance(table, type) and issubclass(table, Options) else ()


MOST_NAMED = 12
"""Most options that an error lists. More: they hide the helpful sentence."""
OWN_KEY = "key of your own goes into option 'config' or into Topology.config."


def check_known(given: Iterable[str], tables: Iterable[type[Options]], also: Iterable[str] = ()) -> None:
    """Raises OptionError for the first key that is neither in a table nor in ``also``; proposes the nearest known one.
    Case does not count."""
    tables, also = tuple(tables), tuple(also)
    named = {key.lower(): key for table in tables for key in fields_of(table)}
    known = {key.lower(): key for key in also} | named
    for key in given:
        if key.lower() not in known and family_of(key, named.values()) is None:
            if remedy := remedy_of_par(key):
                raise OptionError(f"unknown option {key!r}: {remedy}", code="PYSTORM_UNKNOWN_OPTION")
            near = near_key(key, [*named.values(), *(usual for table in tables for usual in table.usual)], also)
            raise OptionError(
                f"unknown option {key!r}: {_remedy_of_unknown(near, named.values())} Given: {key!r}",
                code="PYSTORM_UNKNOWN_OPTION",
            )


def _remedy_of_unknown(near: str | None, names: Collection[str]) -> str:
    if near:
        return f"did you mean {near!r}? A {OWN_KEY}"
    if len(names) <= MOST_NAMED:
        return f"a {OWN_KEY} Options are: {', '.join(sorted(names))}."
    return f"a {OWN_KEY} docs/OPTIONS.md has all options."


def _families(table: type[Options], lowered: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Key such as ``kafka.*`` → its family: the keys after ``kafka.``, with their values."""
    families: dict[str, dict[str, Any]] = {each.lowered: {} for each in _lookups(table) if each.is_family}
    for key in lowered if families else ():
        if family := family_of(key, families):
            families[family][key[len(family) - 1 :]] = lowered[key]
    return families


def _setting_of(key: str) -> str:
    """Says how to give an option, for a message."""
    if key == "path":  # Spark's own option
        return ".load('/dir') or .option('path', '/dir') on the reader, or by spec(path='/dir') of the spout"
    return f".option({key!r}, ...) on the reader, or by spec(config={{{key!r}: ...}}) of the component"


def parse(table: type[T], given: Mapping[str, Any]) -> T:
    """Reads this table's keys from ``given``, ignoring others; converts strings to the field's type.

    Raises OptionError with key, meaning and value.
    """
    lowered = {key.lower(): value for key, value in given.items()}
    lowered.update(_families(table, lowered))
    values = {}
    for lowered_key, key, field, is_required, _ in _lookups(table):
        if lowered_key not in lowered:
            if is_required:
                raise OptionError(
                    f"option {key!r} is needed: {meaning_of(field)} Set it by {_setting_of(key)}. Given: nothing",
                    code="PYSTORM_MISSING_OPTION",
                )
            continue
        value = lowered[lowered_key]
        try:
            if isinstance(value, str):
                value.encode()  # refuses half a character here, before a later reader of the text does
            values[field.name] = msgspec.convert(value, field.type, strict=False)
        except (msgspec.ValidationError, UnicodeEncodeError) as error:
            what = cut(str(error), LONGEST_GIVEN)  # it may quote the value
            part = wrong_part(field, value)
            wrong = "" if part is None else f", and {shown(key, part)} is wrong"
            raise OptionError(
                f"option {key!r}: {accepted(field, what)}{wrong}. {meaning_of(field)} Given: {shown(key, value)}",
                code="PYSTORM_INVALID_OPTION",
            ) from None
    return table(**table.defaults_beside(values), **values)
