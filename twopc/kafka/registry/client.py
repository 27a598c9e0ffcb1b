"""The requests of serdes to a schema registry. This module is the only door to `confluent_kafka.schema_registry`.

A registry that does not answer, or not now, is asked again with growing pauses, and that is said once; then
Unavailable is raised, so that a new attempt of the job goes on waiting. What it refuses is a ConfigurationError.
"""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from twopc.errors import ConfigurationError, Unavailable
from twopc.kafka.clients.retry import backoff
from twopc.kafka.registry.access import RegistryAccess
from twopc.kafka.registry.schema import Schema, SchemaReference, SchemaVersion

T = TypeVar("T")

ANSWER_BUDGET_SECONDS = 30.0
SILENT_SECONDS = 2.0

_NOT_THERE = (40401, 40402, 40403)
_REFUSED_LOGIN = (401, 403)
_NOT_NOW = (408, 429)

log = logging.getLogger(__name__)


class UnknownSchema(LookupError):
    """The registry answers, and has no such schema."""


class IncompatibleSchema(Exception):
    """The registry's rule of compatibility refuses a schema under a subject; the text is what it said."""


class RegistryClient:
    """One connection to a registry, for one thread. Schemas are immutable, so what was asked for by id is kept."""

    def __init__(self, access: RegistryAccess) -> None:
        self._access = access
        self._api = _api()
        try:
            self._client = self._api.SchemaRegistryClient(access.client_config())
        except (ValueError, TypeError, OSError) as error:
            raise ConfigurationError(f"the schema registry {access} can't be used: {error}") from error
        self._versions: dict[tuple[str, int], Schema] = {}

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()

    def schema(self, schema_id: int) -> Schema:
        """Return the schema with this id; raise UnknownSchema where there is none."""
        found = self._ask(lambda: self._client.get_schema(schema_id))
        if found is None:
            raise UnknownSchema(f"the schema registry {self._access} has no schema {schema_id}")
        return _schema(found)

    def version(self, reference: SchemaReference) -> Schema:
        """Return what a reference names; raise ConfigurationError where it is not there."""
        key = (reference.subject, reference.version)
        if key not in self._versions:
            found = self._ask(lambda: self._client.get_version(*key))
            if found is None:
                raise ConfigurationError(
                    f"the schema registry {self._access} has no version {reference.version} of subject "
                    f"{reference.subject!r}, to which a schema refers as {reference.name!r}"
                )
            self._versions[key] = _schema(found.schema)
        return self._versions[key]

    def latest(self, subject: str) -> SchemaVersion | None:
        """Return the newest version of a subject; None where it has none."""
        self._client.clear_latest_caches()
        found = self._ask(lambda: self._client.get_latest_version(subject))
        return None if found is None else SchemaVersion(subject, found.version, _schema(found.schema))

    def found(self, subject: str, schema: Schema) -> tuple[int, int] | None:
        """Return the id, and the version under the subject, of a schema that is registered there; None if it isn't."""
        found = self._ask(lambda: self._client.lookup_schema(subject, self._form(schema), normalize_schemas=True))
        return None if found is None else (found.schema_id, found.version)

    def register(self, subject: str, schema: Schema) -> int:
        """Register a schema, if it is not there; return its id. Raise IncompatibleSchema where it may not be there."""
        form = self._form(schema)
        made = self._ask(lambda: self._client.register_schema(subject, form, normalize_schemas=True))
        if made is None:
            raise ConfigurationError(f"the schema registry {self._access} can't have subject {subject!r}")
        return int(made)

    def is_compatible(self, subject: str, schema: Schema) -> bool:
        """Say whether the registry would let the schema be the next version of a subject that has one."""
        return bool(self._ask(lambda: self._client.test_compatibility(subject, self._form(schema))))

    def _form(self, schema: Schema) -> Any:
        references = [
            self._api.SchemaReference(reference.name, reference.subject, reference.version)
            for reference in schema.references
        ]
        return self._api.Schema(schema.text, schema_type=schema.type, references=references)

    def _ask(self, question: Callable[[], T]) -> T | None:
        """Return the answer, None for what is not there."""
        began, is_logged = time.monotonic(), False
        last = Unavailable("")
        for _ in backoff(ANSWER_BUDGET_SECONDS):
            try:
                return self._ask_once(question)
            except Unavailable as error:
                last = error
            if not is_logged and time.monotonic() - began > SILENT_SECONDS:
                is_logged = True
                log.warning("%s; asking again", last)
        raise last

    def _ask_once(self, question: Callable[[], T]) -> T | None:
        try:
            return question()
        except self._api.SchemaRegistryError as error:
            if error.error_code in _NOT_THERE:
                return None
            self._refused(error)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ConfigurationError(f"what answers at {self._access} is no schema registry: {error}") from error
        except Exception as error:  # noqa: BLE001 - no connection, in the words of whatever client is below
            self._unreached(error)

    def _refused(self, error: Any) -> NoReturn:
        status, problem = error.http_status_code, f"{error.error_message} (HTTP {error.http_status_code})"
        if status in _NOT_NOW or status >= 500:
            raise Unavailable(f"the schema registry {self._access} can't answer now: {problem}") from error
        if status in _REFUSED_LOGIN:
            raise ConfigurationError(
                f"the schema registry {self._access} refuses the login: {problem}. "
                "Correct basic.auth.user.info, or what it wants instead, in the properties of SchemaRegistry"
            ) from error
        if status == 409:
            raise IncompatibleSchema(error.error_message) from error
        if status == 404:
            raise ConfigurationError(f"at {self._access} is no schema registry (HTTP 404): give its whole address")
        raise ConfigurationError(f"the schema registry {self._access} refuses: {problem}") from error

    def _unreached(self, error: Exception) -> NoReturn:
        if trouble := _tls_trouble(error):
            raise ConfigurationError(
                f"the schema registry {self._access} can't be trusted: {trouble}. Correct ssl.ca.location"
            ) from error
        what = f"{type(error).__name__}: {error}"
        raise Unavailable(f"the schema registry {self._access} does not answer: {what}") from error


def _schema(form: Any) -> Schema:
    references = tuple(
        SchemaReference(reference.name, reference.subject, reference.version) for reference in form.references or ()
    )
    return Schema(form.schema_type or "AVRO", form.schema_str or "", references)


def _tls_trouble(error: BaseException) -> str | None:
    """Return what is wrong with a certificate, if that is what an error comes from; None for anything else."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return cause.verify_message
        cause = cause.__cause__ or cause.__context__
    return "CERTIFICATE_VERIFY_FAILED" if "CERTIFICATE_VERIFY_FAILED" in str(error) else None


def _api() -> Any:
    try:
        from confluent_kafka import schema_registry
    except ImportError as error:
        raise ConfigurationError(
            f"SchemaRegistry needs packages that are not installed ({error.name}): install twopc-streams[registry]"
        ) from error
    # It would report every request.
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    return schema_registry
