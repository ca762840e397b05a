"""Address patterns of trusted clients, such as `192.168.0.*` (RocketMQ's RemoteAddressStrategyFactory).

| form | matches |
| --- | --- |
| `*`, `*.*.*.*`, `*:*:*:*:*:*:*:*` | every address |
| `10.0.0.7`, `2001:db8::7` | this address |
| `10.0.0.1,10.0.0.7` | each of these addresses |
| `10.0.0.{1,7}`, `2001:db8::{1,7}` | addresses that end with one of the parts in braces |
| `10.0.*`, `10.0.0.*`, `2001:db8:0:0:0:0:0:*` | each address with this prefix |
| `10.0.0.5-9`, `10.0.5-9.*`, `2001:db8:0:0:0:0:0:5-9` | addresses with one part in the range; the parts after it are `*` |
"""

import struct
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Final

from rocketmq_broker.acl.errors import AccountMistake

_EVERY: Final = frozenset({"*", "*.*.*.*", "*:*:*:*:*:*:*:*"})
_EIGHT_PARTS: Final = struct.Struct(">8H")
_Parts = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AddressPattern:
    """A range for each part of an address. IPv4 addresses have 4 parts of 8 bits, IPv6 addresses have 8 parts of 16 bits."""

    ranges: tuple[tuple[int, int], ...]

    def matches(self, parts: _Parts) -> bool:
        """Returns whether each part of an address is in its range."""
        if len(parts) != len(self.ranges):
            return False
        return all(low <= part <= high for part, (low, high) in zip(parts, self.ranges, strict=True))


@dataclass(frozen=True, slots=True)
class RemoteAddresses:
    """The addresses of one entry of a white list."""

    patterns: tuple[AddressPattern, ...] = ()
    is_every: bool = False

    def match(self, address: str) -> bool:
        """Returns whether the IP address of a client matches. An IPv4-mapped IPv6 address is treated as IPv4."""
        if self.is_every:
            return True
        if not self.patterns:
            return False
        parts = _parts_of(address)
        return any(pattern.matches(parts) for pattern in self.patterns)


NO_ADDRESSES: Final = RemoteAddresses()
"""A white list without addresses."""


def parse_remote_addresses(text: str) -> RemoteAddresses:
    """Parses one entry of a white list; a blank text matches no address. Raises AccountMistake."""
    text = text.strip()
    if not text:
        return NO_ADDRESSES
    if text in _EVERY:
        return RemoteAddresses(is_every=True)
    return RemoteAddresses(tuple(_parse_one(one, text) for one in _choices(text)))


def _choices(text: str) -> list[str]:
    """Returns the single addresses of a list such as `a,b` or `10.0.0.{1,7}`."""
    if not text.endswith("}"):
        return text.split(",")
    head, brace, tail = text.partition("{")
    if not brace or not head.endswith((".", ":")):
        raise _mistake(text)
    return [head + last for last in tail.removesuffix("}").split(",")]


def _parse_one(text: str, entry: str) -> AddressPattern:
    text = text.strip()
    try:
        if "*" not in text and "-" not in text:
            return AddressPattern(tuple((part, part) for part in _parts_of(text)))
        return _parse_ipv6_range(text) if ":" in text else _parse_range(text.split("."), 4, 10, 0xFF)
    except ValueError:
        raise _mistake(entry) from None


def _parse_ipv6_range(text: str) -> AddressPattern:
    """Parses an IPv6 range. `::` may abbreviate zeros before the first `*` or `-`. Raises ValueError."""
    parts = text.split(":")
    first = next(index for index, part in enumerate(parts) if "*" in part or "-" in part)
    if "" in parts:
        tail = parts[first:]
        whole = IPv6Address(":".join([*parts[:first], *["0"] * len(tail)]))
        parts = [*whole.exploded.split(":")[: 8 - len(tail)], *tail]
    return _parse_range(parts, 8, 16, 0xFFFF)


def _parse_range(parts: list[str], count: int, base: int, max_part: int) -> AddressPattern:
    """Parses an address with a range or `*` in one part, such as `10.0.1-5.*`. All later parts must be `*` or omitted.

    Raises ValueError if the address is malformed.
    """
    ranges = [_range_of(part.strip(), base, max_part) for part in parts]
    first = next(index for index, part in enumerate(parts) if "*" in part or "-" in part)
    if first == 0 or len(parts) > count or any(part.strip() != "*" for part in parts[first + 1 :]):
        raise ValueError(f"the first part must be a number, and the parts after a range or * must be * or omitted: {parts}")
    return AddressPattern((*ranges, *[(0, max_part)] * (count - len(ranges))))


def _range_of(part: str, base: int, max_part: int) -> tuple[int, int]:
    if part == "*":
        return 0, max_part
    first, minus, last = part.partition("-")
    low, high = int(first, base), int(last if minus else first, base)
    if not 0 <= low <= high <= max_part or "_" in part:
        raise ValueError(f"{part!r} is not a number from 0 to {max_part}")
    return low, high


@lru_cache(maxsize=4096)
def _parts_of(address: str) -> _Parts:
    """Returns the parts of an IP address. Raises ValueError if the text is not an IP address."""
    parsed = ip_address(address)
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is None:
            return _EIGHT_PARTS.unpack(parsed.packed)
        parsed = parsed.ipv4_mapped
    return tuple(parsed.packed)


def _mistake(text: str) -> AccountMistake:
    return AccountMistake(
        f"invalid address {text!r}: expected an IP address, 10.0.0.*, 10.0.0.5-9, 10.0.0.{{1,7}}, or several separated by commas"
    )
