"""Tells requests for this service from those that a foreign page made a browser send.

A browser sends requests to a loopback address for any page, and an unguarded service accepts them in two cases:

- a page posts a form, which needs no permission if the body is no JSON: the headers Origin and Sec-Fetch-Site show it;
- the page's own name comes to mean 127.0.0.1 (DNS rebinding), and all is one origin to the browser: the Host header shows it.
"""

import ipaddress
from dataclasses import dataclass
from typing import Annotated, Final, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator

_SAFE_METHODS: Final = ("GET", "HEAD", "OPTIONS")
_FROM_OUTSIDE: Final = ("cross-site", "same-site")


def _split(text: str) -> list[str]:
    return text.replace(",", " ").lower().split()


def _host_names(text: str) -> str:
    for name in _split(text):
        if not _is_address(name) and _host_of(name) != name:
            raise ValueError(
                f"{name!r} is no host name: names without http:// and without a port are expected, with commas between"
            )
    return text


HostNames = Annotated[str, AfterValidator(_host_names)]
"""Host names with commas between them."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The refusal of a request: the HTTP status and a sentence."""

    status: int
    detail: str


@dataclass(frozen=True, slots=True)
class KnownHosts:
    """The names of a service: those of loopback, its listening address, and names given to it."""

    bound_host: str = "127.0.0.1"
    names: frozenset[str] = frozenset()

    @classmethod
    def of(cls, bound_host: str, names: str) -> Self:
        """Returns the names of a service that listens on `bound_host`; `names` is a list in the form of HostNames."""
        return cls(bound_host.lower(), frozenset(_split(names)))

    def refusal(self, method: str, host: str | None, origin: str | None, fetch_site: str | None) -> Refusal | None:
        """Returns why a request with these headers is refused; None if it is served. `host` is None without a Host header."""
        if host is not None and not self._knows(_host_of(host)):
            return Refusal(
                421, f"{host!r} is no name of this service: ask by a name it knows, or add the name to its known hosts"
            )
        if origin is not None and not self._is_own(origin, host):
            return Refusal(403, f"a page of {origin!r} may not use this service")
        if fetch_site in _FROM_OUTSIDE and method not in _SAFE_METHODS:
            return Refusal(403, "a page of another site may not change anything here")
        return None

    def _knows(self, name: str) -> bool:
        if name == self.bound_host or name in self.names or _is_loopback(name):
            return True
        # A page's requests always have its own origin's address as Host. A service on loopback has only loopback names.
        return _is_address(name) and not _is_loopback(self.bound_host)

    def _is_own(self, origin: str, host: str | None) -> bool:
        """Returns whether host and port agree, or the name was given to the service: a proxy may have set its own."""
        scheme, _, place = origin.lower().partition("://")
        return scheme in ("http", "https") and (place == (host or "").lower() or _host_of(place) in self.names)


def _host_of(host_and_port: str) -> str:
    """Returns the host of a Host header, in lower case and without brackets; empty if there is none."""
    try:
        parts = urlsplit(f"//{host_and_port}")
        _ = parts.port
    except ValueError:
        return ""
    if parts.netloc != host_and_port or "@" in host_and_port:
        return ""
    return (parts.hostname or "").removesuffix(".")


def _is_loopback(name: str) -> bool:
    if _is_address(name):
        return ipaddress.ip_address(name).is_loopback
    return name == "localhost" or name.endswith(".localhost")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
