"""The serdes of a job's states, kept beside them: they show a stored state to a person who has no job file.

A serde of the user's own is kept by its name only: whatever a checkpoint says, nothing is imported on its word.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from twopc.errors import CheckpointCorrupted, ConfigurationError
from twopc.protocol.envelope import decode_fact, encode_fact
from twopc.serde import Avro, Bytes, Double, Float, Int, Json, Long, Protobuf, Serde, String
from twopc.state.backend import Family, StateBackend
from twopc.state.forms import BY_ENTRY, FORMS, Form
from twopc.state.layout import StateName
from twopc.state.whole_states import ByEntry

KEY = b"/serdes"
"""Their place in operator state; the name of an operator's own state never begins so."""

_KIND = "state-serdes"
_PLAIN: dict[type[Serde], str] = {
    Bytes: "bytes",
    Double: "double",
    Float: "float",
    Int: "int",
    Json: "json",
    Long: "long",
    String: "string",
}
_BY_NAME: dict[str, type[Serde]] = {name: kind for kind, name in _PLAIN.items()}


def write_serdes(backend: StateBackend, serdes: Mapping[StateName, Serde]) -> None:
    """Keep how these states are encoded; what is known of other states stays."""
    known = _read(backend)
    new = known | {str(state): _description(serde) for state, serde in serdes.items()}
    if new != known:
        backend.put_many(Family.OPERATOR, [(KEY, encode_fact(_KIND, new))])


def check_serdes(backend: StateBackend, serdes: Mapping[StateName, Serde]) -> None:
    """Raise ConfigurationError if a state was written with another serde than the job declares for it now.

    Of two serdes of the user's own only the names are compared.
    """
    known = _read(backend)
    for name, serde in ((str(state), serde) for state, serde in serdes.items()):
        if name not in known:
            continue
        # It raises where what is kept can't be used.
        _serde(name, known[name])
        if not _same(known[name], serde):
            text = _serde_name(known[name], serde)
            raise ConfigurationError(
                f"the restored checkpoint holds state {name!r} as {text} wrote it, and the job declares {serde!r} for "
                "it, which would read something else: declare the serde that wrote it, or give the state another name "
                f"and give the old one up with --drop-states {name}"
            )


def forget_serdes(backend: StateBackend, states: Collection[StateName]) -> None:
    """Keep no longer how these states are encoded; one that isn't known is fine."""
    known = _read(backend)
    left = {name: description for name, description in known.items() if StateName.parse(name) not in states}
    if left != known:
        backend.put_many(Family.OPERATOR, [(KEY, encode_fact(_KIND, left))])


def read_serdes(backend: StateBackend) -> dict[StateName, Serde | None]:
    """Return the serde of each state of which it is kept; None for one that is not of this package."""
    return {StateName.parse(name): _serde(name, description) for name, description in _read(backend).items()}


def read_by_entry(backend: StateBackend) -> ByEntry:
    """Return the form of each state that is stored by entry."""
    kinds = {StateName.parse(name): description["serde"] for name, description in _read(backend).items()}
    return {state: BY_ENTRY[kind] for state, kind in kinds.items() if kind in BY_ENTRY}


def serde_named(name: str) -> Serde | None:
    """Return the serde of this package that has this name and needs nothing else to be known."""
    kind = _BY_NAME.get(name)
    return None if kind is None else kind()


def _same(description: Any, declared: Serde) -> bool:
    """Whether the serde that is described writes as the declared one."""
    if isinstance(declared, Form):
        parts = declared.parts.items()
        return description["serde"] == declared.kind and all(_same(description[name], part) for name, part in parts)
    if isinstance(declared, Avro) and description["serde"] == "avro":
        return declared.difference(Avro(description["schema"])) is None
    if type(declared) is Protobuf:
        return description.get("name") == repr(declared) and declared.difference(description["shape"]) is None
    return bool(description == _description(declared))


def _serde_name(description: Any, declared: Serde) -> str:
    """Name the serde that is described, for people."""
    if (form := FORMS.get(description["serde"])) is not None:
        parts = declared.parts if isinstance(declared, Form) and declared.kind == form.kind else {}
        named = {
            name: _serde_name(part, parts.get(name, declared)) for name, part in description.items() if name != "serde"
        }
        return form.named(**named)
    if description["serde"] == "avro":
        why = declared.difference(Avro(description["schema"])) if isinstance(declared, Avro) else None
        return f"Avro with another schema ({why})" if why else "Avro"
    if type(declared) is Protobuf and description.get("name") == repr(declared):
        return f"{declared} with another schema ({declared.difference(description['shape'])})"
    return str(description["name"])


def _read(backend: StateBackend) -> dict[str, Any]:
    stored = backend.get_many(Family.OPERATOR, [KEY])[0]
    return {} if stored is None else decode_fact(_KIND, stored, "what a snapshot says of its serdes")


def _description(serde: Serde) -> dict[str, Any]:
    if type(serde) is Avro:
        return {"serde": "avro", "schema": serde.schema}
    if isinstance(serde, Form):
        return {"serde": serde.kind, **{name: _description(part) for name, part in serde.parts.items()}}
    if type(serde) is Protobuf:
        return {"serde": "other", "name": repr(serde), "shape": serde.shape}
    name = type(serde).__qualname__
    return {"serde": _PLAIN.get(type(serde), "other"), "name": name}


def _serde(name: str, description: Any) -> Serde | None:
    try:
        kind = description["serde"]
        if kind in FORMS:
            parts = {part: _serde(name, described) for part, described in description.items() if part != "serde"}
            return None if None in parts.values() else FORMS[kind](**parts)
        return Avro(description["schema"]) if kind == "avro" else serde_named(kind)
    except (KeyError, TypeError, ConfigurationError) as error:
        raise CheckpointCorrupted(
            f"what a snapshot says of the serde of state {name!r} can't be used: {error}"
        ) from error
