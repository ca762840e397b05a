"""The guard of HTTP servers against requests that a page of another site made a browser send.

A browser sends requests to a loopback address for any page, and an unguarded service accepts them in two cases:

- a page posts a form, which needs no permission if the body is no JSON: the headers Origin and Sec-Fetch-Site show it;
- the page's own name comes to mean 127.0.0.1 (DNS rebinding), and all is one origin to the browser: the Host header shows it.
"""

import ipaddress
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import urlsplit

_SAFE_METHODS: Final = ("GET", "HEAD", "OPTIONS")
_FROM_OUTSIDE: Final = ("cross-site", "same-site")


@dataclass(frozen=True, slots=True)
class HostRefusal:
    """The refusal of a request: the HTTP status and a sentence."""

    status: int
    detail: str


@dataclass(frozen=True, slots=True)
class KnownHosts:
    """The names of a server: those of loopback, its listening address, and names given to it."""

    bound_host: str = "127.0.0.1"
    names: frozenset[str] = frozenset()
    knows_any_name: bool = False
    """Whether every name is accepted: for a server with a password, which a page with a rebound name does not know."""

    @classmethod
    def of(cls, bound_host: str, names: str) -> Self:
        """Returns the hosts of a server that listens on `bound_host`; `names` have commas or blanks between them."""
        return cls(bound_host.lower(), frozenset(split_names(names)))

    def refusal(self, method: str, host: str | None, origin: str | None, fetch_site: str | None) -> HostRefusal | None:
        """Returns why a request with these headers is refused; None if it is served. `host` is None without a Host header."""
        if host is not None and not self._knows(host_of(host)):
            return HostRefusal(421, f"{host!r} is no name of this server: ask by a name it knows")
        if origin is not None and not self._is_own(origin, host):
            return HostRefusal(403, f"a page of {origin!r} may not use this server")
        if fetch_site in _FROM_OUTSIDE and method not in _SAFE_METHODS:
            return HostRefusal(403, "a page of another site may not change anything here")
        return None

    def _knows(self, name: str) -> bool:
        if self.knows_any_name or name == self.bound_host or name in self.names or is_loopback(name):
            return True
        # A page's requests always have its own origin's address as Host. A service on loopback has only loopback names.
        return is_address(name) and not is_loopback(self.bound_host)

    def _is_own(self, origin: str, host: str | None) -> bool:
        """Returns whether host and port agree, or the name was given to the service: a proxy may have set its own."""
        scheme, _, place = origin.lower().partition("://")
        return scheme in ("http", "https") and (place == (host or "").lower() or host_of(place) in self.names)


def split_names(text: str) -> list[str]:
    """Returns the names in a list with commas or blanks between them, in lower case."""
    return text.replace(",", " ").lower().split()


def host_of(host_and_port: str) -> str:
    """Returns the host of a Host header, in lower case and without brackets; empty if there is none."""
    try:
        parts = urlsplit(f"//{host_and_port}")
        _ = parts.port
    except ValueError:
        return ""
    if parts.netloc != host_and_port or "@" in host_and_port:
        return ""
    return (parts.hostname or "").removesuffix(".")


def is_loopback(name: str) -> bool:
    """Returns whether a name or an address leads to this machine only."""
    if is_address(name):
        return ipaddress.ip_address(name).is_loopback
    return name == "localhost" or name.endswith(".localhost")


def is_address(name: str) -> bool:
    """Returns whether this is an IP address, without brackets."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
