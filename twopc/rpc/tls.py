"""TLS between the coordinator and those who dial it: which files, and that they work, before anything is opened.

Settings hold paths, never contents: a key is read by the process that uses it, on the machine where it runs.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import grpc

from twopc.config import RunSettings
from twopc.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files. `ca` says whom to trust; `cert` and `key`, together, say who one is."""

    ca: str = ""
    cert: str = ""
    key: str = ""

    def __post_init__(self) -> None:
        if bool(self.cert) != bool(self.key):
            raise ConfigurationError(f"a certificate and its key go together: only {self.cert or self.key} is given")


def driver_tls(settings: RunSettings) -> TlsFiles | None:
    """The driver's credentials for the coordinator that it dials; None for no TLS."""
    return _dialling(settings, settings.coordinator_cert, settings.coordinator_key)


def worker_tls(settings: RunSettings) -> TlsFiles | None:
    """A worker's credentials for the coordinator: its own certificate where it has one, else the driver's."""
    if not settings.worker_cert and not settings.worker_key:
        return driver_tls(settings)
    return _dialling(settings, settings.worker_cert, settings.worker_key)


def _dialling(settings: RunSettings, cert: str, key: str) -> TlsFiles | None:
    if settings.coordinator is None:
        return None
    files = TlsFiles(settings.coordinator_ca, cert, key)
    if files.cert and not files.ca:
        raise ConfigurationError(
            f"{files.cert} is of no use without the coordinator's authority: give coordinator_ca (--coordinator-ca)"
        )
    return files if files.ca else None


def channel_credentials(files: TlsFiles) -> grpc.ChannelCredentials:
    """For one who dials. Raises ConfigurationError if a file can't be used."""
    ca, cert, key = _read(files)
    return grpc.ssl_channel_credentials(ca, key, cert)


def server_credentials(files: TlsFiles) -> grpc.ServerCredentials:
    """For the coordinator; with `ca`, every client needs a certificate that it signed."""
    ca, cert, key = _read(files)
    if cert is None or key is None:
        raise ConfigurationError(
            "a coordinator with TLS needs a certificate and its key: give --tls-cert and --tls-key"
        )
    return grpc.ssl_server_credentials([(key, cert)], ca, require_client_auth=ca is not None)


def _read(files: TlsFiles) -> tuple[bytes | None, bytes | None, bytes | None]:
    """The contents, after OpenSSL found them whole: gRPC itself would only say that no connection comes about."""
    contents = _content(files.ca), _content(files.cert), _content(files.key)
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if files.ca:
            trusting.load_verify_locations(cafile=files.ca)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{files.ca} holds no certificate of an authority, in PEM form") from error
    try:
        if files.cert:
            trusting.load_cert_chain(files.cert, files.key, password=_no_password)
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"{files.cert} and {files.key} are no certificate and its own key, in PEM form and without a password"
        ) from error
    return contents


def _content(path: str) -> bytes | None:
    if not path:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigurationError(f"the TLS file {path} can't be read: {error.strerror}") from error


def _no_password() -> NoReturn:
    raise ValueError("the key has a password")
