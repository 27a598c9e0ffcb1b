"""Values as JSON and back, by nothing but their types: whatever is stored, and whatever is sent as JSON. Pure.

| type | JSON |
|---|---|
| dataclass | an object with every field that its constructor takes; a list of them where it says `AS_LIST` |
| several dataclasses (`A \\| B`) | the object, which says under "type" (or what they call `TAG`) which of them it is |
| tuple, NamedTuple, frozenset | a list |
| Mapping | an object; names may be text, of an enum, or bytes |
| enum | its value |
| bytes | text in base64 |
| Any | any JSON value, as it is |

Reading is strict: nothing is converted, and what a type refuses when it is made is refused here too. A field that has a
default may be missing: an older version, which had no such field, wrote the value. What is there and is not known is of
a newer one (`Newer`).
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from enum import Enum, StrEnum
from functools import cache, lru_cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, NewType, TypeVar, Union, cast, get_args, get_origin, get_type_hints, overload

from twopc.errors import TwoPhaseCommitError

T = TypeVar("T")

Writer = Callable[[Any], Any]
Reader = Callable[[Any, str], Any]
"""Takes a JSON value, and the name under which the innermost object of names around it holds it."""


class Mismatch(ValueError):
    """A JSON value that is not of the type; its text says where in the value, and why."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self._why = why
        self._path = ""

    def inside(self, name: str) -> Mismatch:
        """Return it as seen from the value around."""
        self._path = f"{name}.{self._path}" if self._path and not self._path.startswith("[") else name + self._path
        return self

    def __str__(self) -> str:
        return f"{self._path} {self._why}" if self._path else self._why


class Newer(Mismatch):
    """A JSON value with something in it that this version does not know, as a newer one would write it."""


def from_name() -> Any:
    """Declare a text field that is not written: it has the name under which a Mapping holds the value, "" outside."""
    return field(default="", compare=False, metadata={_FROM_NAME: True})


def to_json(value: Any, kind: object = None) -> Any:
    """Return the value as JSON, in which tuples stand for lists; `kind` is its type where its class does not tell."""
    write = _form(type(value) if kind is None else kind).write
    return value if write is None else write(value)


@overload
def from_json(kind: type[T], body: Any) -> T: ...
@overload
def from_json(kind: object, body: Any) -> Any: ...
def from_json(kind: Any, body: Any) -> Any:
    """Return the value that `to_json` has written so; raise Mismatch."""
    form = _form(kind)
    try:
        return form.read(body, "")
    except (KeyError, ValueError, TwoPhaseCommitError):
        return form.examine(body, "")


@lru_cache(256)
def tag_of(kind: type) -> str:
    """Return the word for a class where it is one of several: its name, in small letters with hyphens."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind.__name__).lower()


@dataclass(frozen=True, slots=True)
class _Form:
    """The written form of a type's values, and how it is read.

    `write` is None where they are JSON as they are. `read` is quick, and raises KeyError, ValueError or what a type
    refuses itself with; `examine` reads the same, part by part, and its Mismatch says where it goes wrong. What is
    `exact`ly of that class need not be read.
    """

    write: Writer | None
    read: Reader
    examine: Reader
    exact: type | None = None


_FROM_NAME = "from name"
_LISTS = (list, tuple)


def _leaf(kind: Any, expected: str) -> _Form:
    def read(body: Any, _: str) -> Any:
        return body if type(body) is kind else _refuse(body, expected)

    return _Form(None, read, read, kind)


def _refuse(body: Any, expected: str) -> Any:
    raise Mismatch(f"is {_shown(body)}, not {expected}")


def _shown(body: Any) -> str:
    match body:
        case dict():
            return "an object"
        case list() | tuple():
            return f"a list of {len(body)}"
    text = repr(body)
    return text if len(text) <= 40 else text[:40] + "..."


def _as_it_is(body: Any, _: str) -> Any:
    return body


def _read_float(body: Any, _: str) -> float:
    try:
        return float(body) if type(body) in (int, float) else _refuse(body, "a number")
    except OverflowError:
        return float(_refuse(body, "a number of that size"))


def _read_bytes(body: Any, _: str) -> bytes:
    try:
        return b64decode(body.encode("ascii"), validate=True)
    except (AttributeError, UnicodeEncodeError, binascii.Error):
        return bytes(_refuse(body, "bytes in base64"))


def _write_bytes(value: bytes) -> str:
    return b64encode(value).decode("ascii")


_LEAVES: Mapping[Any, _Form] = {
    Any: _Form(None, _as_it_is, _as_it_is),
    str: _leaf(str, "text"),
    int: _leaf(int, "a whole number"),
    bool: _leaf(bool, "true or false"),
    float: _Form(None, _read_float, _read_float, float),
    bytes: _Form(_write_bytes, _read_bytes, _read_bytes),
}


@cache
def _form(kind: Any) -> _Form:
    if kind in _LEAVES:
        return _LEAVES[kind]
    if isinstance(kind, NewType):
        return _form(kind.__supertype__)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _union(arguments)
    if origin is tuple and arguments[1:] == (...,):
        return _sequence(_form(arguments[0]), tuple)
    if origin is tuple:
        return _record(tuple, list(map(_form, arguments)))
    if origin is frozenset:
        return _sequence(_form(arguments[0]), frozenset)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(*map(_form, arguments))
    return _of_class(kind)


def _of_class(kind: Any) -> _Form:
    if issubclass(kind, Enum):
        return _enum(kind)
    if is_dataclass(kind):
        return _dataclass(kind)
    if issubclass(kind, tuple):
        return _record(kind._make, [_form(hint) for hint in get_type_hints(kind).values()])
    raise TypeError(f"{kind!r} has no form in JSON")


def _enum(kind: type[Enum]) -> _Form:
    members = {member.value: member for member in kind}

    def read(body: Any, _: str) -> Enum:
        member = members.get(body) if isinstance(body, str) else None
        return _refuse(body, f"one of {', '.join(members)}") if member is None else member

    return _Form(None if issubclass(kind, StrEnum) else attrgetter("value"), read, read)


def _sequence(item: _Form, make: Callable[[list[Any]], Any]) -> _Form:
    """A list of any length; of a set it is in order."""
    write_item, read_item = item.write, item.read
    holds_exact = {item.exact}.issuperset

    def read(body: Any, around: str) -> Any:
        if type(body) not in _LISTS:
            _refuse(body, "a list")
        if holds_exact(map(type, body)):
            return make(body)
        return make([read_item(each, around) for each in body])

    def examine(body: Any, around: str) -> Any:
        _check_list(body)
        return make([_part(item, f"[{number}]", each, around) for number, each in enumerate(body)])

    if make is frozenset:
        return _Form(sorted, read, examine)
    return _Form(None if write_item is None else lambda values: list(map(write_item, values)), read, examine)


def _record(make: Callable[[list[Any]], Any], items: list[_Form]) -> _Form:
    """A list in which each place has a type of its own."""
    writers = [item.write or (lambda value: value) for item in items]

    def examine(body: Any, around: str) -> Any:
        _check_list(body, len(items))
        return make([_part(items[number], f"[{number}]", each, around) for number, each in enumerate(body)])

    return _Form(lambda value: [write(each) for write, each in zip(writers, value, strict=True)], examine, examine)


def _mapping(key: _Form, item: _Form) -> _Form:
    write_key, write_item = key.write or (lambda name: name), item.write or (lambda value: value)
    read_key, read_item = key.read, item.read

    def write(value: Mapping[Any, Any]) -> dict[Any, Any]:
        return {write_key(name): write_item(each) for name, each in value.items()}

    def read(body: Any, _: str) -> dict[Any, Any]:
        _check_object(body)
        return {read_key(name, ""): read_item(each, name) for name, each in body.items()}

    def examine(body: Any, _: str) -> dict[Any, Any]:
        _check_object(body)
        return {_part(key, name, name, ""): _part(item, name, each, name) for name, each in body.items()}

    is_json = key.write is None and item.write is None
    return _Form((lambda value: value if type(value) is dict else dict(value)) if is_json else write, read, examine)


def _part(item: _Form, place: str, body: Any, around: str) -> Any:
    try:
        return item.examine(body, around)
    except Mismatch as error:
        raise error.inside(place) from None


def _check_list(body: Any, size: int | None = None) -> None:
    if type(body) not in _LISTS or size not in (None, len(body)):
        _refuse(body, "a list" if size is None else f"a list of {size}")


def _check_object(body: Any) -> None:
    if type(body) is not dict:
        _refuse(body, "an object")


def _dataclass(kind: Any) -> _Form:
    hints = get_type_hints(kind)
    own = [each for each in fields(kind) if each.init]
    forms = {each.name: _form(hints[each.name]) for each in own if _FROM_NAME not in each.metadata}
    needed = [each.name for each in own if each.name in forms and not _has_default(each)]
    as_list: bool = getattr(kind, "AS_LIST", False)
    keys = {name: number if as_list else name for number, name in enumerate(forms)}

    def examine(body: Any, around: str) -> Any:
        there = _check_places(body, forms, needed) if as_list else _check_names(body, forms, needed)
        values = {each.name: around for each in own if each.name not in forms}
        for name in there:
            values[name] = _part(forms[name], name, body[keys[name]], around)
        try:
            return kind(**values)
        except (ValueError, TwoPhaseCommitError) as error:
            raise Mismatch(f"is refused: {error}") from error

    read = _reader(kind, {each.name: forms.get(each.name) for each in own}, keys, examine)
    return _Form(_writer(forms, as_list=as_list), read, examine)


def _has_default(of: Field[Any]) -> bool:
    return of.default is not MISSING or of.default_factory is not MISSING


def _check_names(body: Any, names: Collection[str], needed: Collection[str]) -> list[str]:
    """Return which of the names an object has; raise Mismatch if it lacks one that is needed, or has others."""
    _check_object(body)
    if unknown := sorted(body.keys() - set(names)):
        raise Newer(f"has {', '.join(unknown)}, which is unknown")
    if missing := sorted(set(needed) - body.keys()):
        raise Mismatch(f"lacks {', '.join(missing)}")
    return [name for name in names if name in body]


def _check_places(body: Any, names: Collection[str], needed: Collection[str]) -> list[str]:
    """The same for a list, in which the first places are those of the names."""
    _check_list(body)
    if len(body) > len(names):
        raise Newer(f"is a list of {len(body)}, of which {len(names)} places are known")
    if len(body) < len(needed):
        _refuse(body, f"a list of {len(names)}")
    return list(names)[: len(body)]


def _writer(forms: Mapping[str, _Form], *, as_list: bool) -> Writer:
    """As `lambda value: {"name": value.name, "parts": write_parts(value.parts)}`."""
    known = {f"write_{name}": form.write for name, form in forms.items()}
    values = [f"value.{name}" if form.write is None else f"write_{name}(value.{name})" for name, form in forms.items()]
    items = values if as_list else [f"{name!r}: {value}" for name, value in zip(forms, values, strict=True)]
    text = f"[{', '.join(items)}]" if as_list else f"{{{', '.join(items)}}}"
    return cast(Writer, _lambda(f"value: {text}", known))


def _reader(kind: Any, forms: Mapping[str, _Form | None], keys: Mapping[str, int | str], examine: Reader) -> Reader:
    """As `lambda body, around: kind(body["name"], read_parts(body["parts"], around))`, but it looks at every type."""
    known: dict[str, Any] = {"kind": kind, "examine": examine, "shape": list if 0 in keys.values() else dict}
    values = []
    for name, form in forms.items():
        if form is None:
            values.append("around")
            continue
        known |= {f"read_{name}": form.read, f"exact_{name}": form.exact}
        taken = f"body[{keys[name]!r}]"
        if form.exact:
            values.append(f"it if type(it := {taken}) is exact_{name} else read_{name}(it, around)")
        else:
            values.append(taken if form.read is _as_it_is else f"read_{name}({taken}, around)")
    if any(each.kw_only for each in fields(kind)):
        values = [f"{name}={value}" for name, value in zip(forms, values, strict=True)]
    made = f"kind({', '.join(values)})"
    text = f"body, around: {made} if type(body) is shape and len(body) == {len(keys)} else examine(body, around)"
    return cast(Reader, _lambda(text, known))


def _lambda(text: str, known: dict[str, Any]) -> Any:
    """Make a function, as the decorator of dataclasses does: there is no word in it but names of fields."""
    return eval(f"lambda {text}", known)  # noqa: S307


def _union(members: tuple[Any, ...]) -> _Form:
    others = [member for member in members if member is not NoneType]
    form = _form(others[0]) if len(others) == 1 else _tagged(others)
    if len(others) == len(members):
        return form
    write, read, examine = form.write, form.read, form.examine
    return _Form(
        None if write is None else lambda value: None if value is None else write(value),
        lambda body, around: None if body is None else read(body, around),
        lambda body, around: None if body is None else examine(body, around),
    )


def _tagged(members: list[Any]) -> _Form:
    tag = getattr(members[0], "TAG", "type")
    by_word = {tag_of(member): _form(member) for member in members}
    writers = {member: (tag_of(member), _form(member).write) for member in members}

    def write(value: Any) -> dict[str, Any]:
        word, write_member = writers[type(value)]
        assert write_member is not None, "a dataclass is written as an object"
        return {tag: word, **write_member(value)}

    def untagged(body: Any) -> tuple[_Form, dict[str, Any]]:
        _check_object(body)
        word = body.get(tag)
        form = by_word.get(word) if type(word) is str else None
        if form is None:
            unlike = Newer if type(word) is str else Mismatch
            raise unlike(f"has {_shown(word)} as its {tag}, not one of {', '.join(by_word)}")
        return form, {each: value for each, value in body.items() if each != tag}

    def read(body: Any, around: str) -> Any:
        form, own = untagged(body)
        return form.read(own, around)

    def examine(body: Any, around: str) -> Any:
        form, own = untagged(body)
        return form.examine(own, around)

    return _Form(write, read, examine)
