"""Protects HTTP servers against requests that a page of another site sends through the user's browser.

Any page can make a browser send requests to a loopback address. There are two attacks:

- A page posts a form, which the browser allows unless the body is JSON. The headers Origin and Sec-Fetch-Site reveal this attack.
- The page's host name resolves to 127.0.0.1 (DNS rebinding), so the request is same-origin. The Host header reveals this attack.
"""

import ipaddress
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import urlsplit

_SAFE_METHODS: Final = ("GET", "HEAD", "OPTIONS")
_FROM_OUTSIDE: Final = ("cross-site", "same-site")


@dataclass(frozen=True, slots=True)
class HostRefusal:
    """The HTTP status and the error message with which a request is refused."""

    status: int
    detail: str


@dataclass(frozen=True, slots=True)
class KnownHosts:
    """The host names of a server: loopback names, its listening address, and configured names."""

    bound_host: str = "127.0.0.1"
    names: frozenset[str] = frozenset()
    knows_any_name: bool = False
    """Whether every host name is accepted. Set it for a server with a password, which also prevents DNS rebinding."""

    @classmethod
    def of(cls, bound_host: str, names: str) -> Self:
        """Returns the hosts of a server that listens on `bound_host`. `names` are separated by commas or spaces."""
        return cls(bound_host.lower(), frozenset(split_names(names)))

    def refusal(self, method: str, host: str | None, origin: str | None, fetch_site: str | None) -> HostRefusal | None:
        """Returns the refusal of a request with these headers, or None. `host` is None without a Host header."""
        if host is not None and not self._knows(host_of(host)):
            return HostRefusal(421, f"unknown host name {host!r}: use a configured name of this server")
        if origin is not None and not self._is_own(origin, host):
            return HostRefusal(403, f"requests from pages of {origin!r} are not allowed")
        if fetch_site in _FROM_OUTSIDE and method not in _SAFE_METHODS:
            return HostRefusal(403, "requests from pages of other sites must not change data")
        return None

    def _knows(self, name: str) -> bool:
        if self.knows_any_name or name == self.bound_host or name in self.names or is_loopback(name):
            return True
        # Requests of a page always have the page's origin as Host. A service on loopback has only loopback names.
        return is_address(name) and not is_loopback(self.bound_host)

    def _is_own(self, origin: str, host: str | None) -> bool:
        """Returns True if the origin is the request's own host and port, or a configured name, for example behind a proxy."""
        scheme, _, place = origin.lower().partition("://")
        return scheme in ("http", "https") and (place == (host or "").lower() or host_of(place) in self.names)


def split_names(text: str) -> list[str]:
    """Splits names separated by commas or spaces, and returns them in lower case."""
    return text.replace(",", " ").lower().split()


def host_of(host_and_port: str) -> str:
    """Returns the host of a Host header, in lower case and without brackets, or an empty string if it is invalid."""
    try:
        parts = urlsplit(f"//{host_and_port}")
        _ = parts.port
    except ValueError:
        return ""
    if parts.netloc != host_and_port or "@" in host_and_port:
        return ""
    return (parts.hostname or "").removesuffix(".")


def is_loopback(name: str) -> bool:
    """Returns True if a host name or address is a loopback name or address."""
    if is_address(name):
        return ipaddress.ip_address(name).is_loopback
    return name == "localhost" or name.endswith(".localhost")


def is_address(name: str) -> bool:
    """Returns True if the string is an IP address without brackets."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
