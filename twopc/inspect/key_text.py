"""A key as a person writes it, in one of several forms. Pure."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from enum import StrEnum
from typing import Any

from twopc.errors import ConfigurationError


class KeyForm(StrEnum):
    """The form in which a key is written."""

    TEXT = "text"
    JSON = "json"
    HEX = "hex"
    BASE64 = "base64"


def parse_key(text: str, form: KeyForm) -> Any:
    """Return the key that is written so, as the job has it; raise ConfigurationError if it is not of that form."""
    try:
        return _FORMS[form](text)
    except ValueError as error:
        raise ConfigurationError(f"the key {text!r} is not {form}, as --key-as says: {error}") from error


_FORMS: dict[KeyForm, Callable[[str], Any]] = {
    KeyForm.TEXT: str,
    KeyForm.JSON: json.loads,
    KeyForm.HEX: bytes.fromhex,
    KeyForm.BASE64: lambda text: base64.b64decode(text, validate=True),
}
