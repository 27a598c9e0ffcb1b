"""Who is let in at a server, and by what. Pure.

On loopback only who calls it by a name of loopback is let in: a page in a browser, whose own name was made to mean this
machine, is not. Where a token is set, it opens the door: as a bearer's, or once as the parameter `token` of a browser's
first address, which becomes a cookie.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie

from twopc.web.answer import Answer

COOKIE = "twopc-token"
PARAMETER = "token"


@dataclass(frozen=True, slots=True)
class Door:
    """The door of a server that listens at this host; no token: whoever reaches it is let in."""

    host: str
    token: str = field(default="", repr=False)

    def refusal(self, headers: Mapping[str, str], parameters: Mapping[str, str], is_open: bool) -> Answer | None:
        """Return what is answered to who is not let in, None who is; `is_open`: anybody may ask for this."""
        if is_loopback(self.host) and not is_loopback(_host_of(headers.get("Host", ""))):
            text = "ask by a name of loopback: localhost, 127.0.0.1 or [::1]"
            return Answer.of_text(text, HTTPStatus.FORBIDDEN)
        if not self.token or is_open or any(map(self._fits, _tokens(headers, parameters))):
            return None
        text = "a token is wanted: as ?token=... in a browser, or in the header Authorization: Bearer ..."
        return Answer.of_text(text, HTTPStatus.UNAUTHORIZED)

    def cookie(self, parameters: Mapping[str, str]) -> str | None:
        """Return the cookie by which a browser is let in from now on, if it has just said the token."""
        if not self.token or not self._fits(parameters.get(PARAMETER, "")):
            return None
        made = SimpleCookie({COOKIE: self.token})
        for name, value in (("path", "/"), ("httponly", True), ("samesite", "Strict")):
            made[COOKIE][name] = value
        return made[COOKIE].OutputString()

    def _fits(self, told: str) -> bool:
        return hmac.compare_digest(told.encode(), self.token.encode())


def _tokens(headers: Mapping[str, str], parameters: Mapping[str, str]) -> list[str]:
    kind, _, bearer = headers.get("Authorization", "").partition(" ")
    try:
        cookies = SimpleCookie(headers.get("Cookie", ""))
    except CookieError:
        cookies = SimpleCookie()
    held = cookies[COOKIE].value if COOKIE in cookies else ""
    return [parameters.get(PARAMETER, ""), held, bearer.strip() if kind.lower() == "bearer" else ""]


def _host_of(header: str) -> str:
    """Return the host of a Host header, without its port."""
    return header[1:].partition("]")[0] if header.startswith("[") else header.partition(":")[0]


def is_loopback(host: str) -> bool:
    """Whether an address, or a name, is this machine's own, and nobody else reaches it."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
