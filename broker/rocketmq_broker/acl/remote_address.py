"""Addresses that need no signature: `192.168.0.*` and the like (RocketMQ's RemoteAddressStrategyFactory).

| form | matches |
| --- | --- |
| `*`, `*.*.*.*`, `*:*:*:*:*:*:*:*` | every address |
| `10.0.0.7`, `2001:db8::7` | that one |
| `10.0.0.1,10.0.0.7` | each of these |
| `10.0.0.{1,7}`, `2001:db8::{1,7}` | each of these: the last part is a choice |
| `10.0.*`, `10.0.0.*`, `2001:db8:0:0:0:0:0:*` | each address that begins with that |
| `10.0.0.5-9`, `10.0.5-9.*`, `2001:db8:0:0:0:0:0:5-9` | a range of one part; the parts after it may be `*` |
"""

from __future__ import annotations

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
    """Addresses given by the range of each of their parts: 4 parts of 8 bits, or 8 parts of 16."""

    ranges: tuple[tuple[int, int], ...]

    def matches(self, parts: _Parts) -> bool:
        """Returns whether an address with these parts is in the ranges."""
        if len(parts) != len(self.ranges):
            return False
        return all(least <= part <= most for part, (least, most) in zip(parts, self.ranges, strict=True))


@dataclass(frozen=True, slots=True)
class RemoteAddresses:
    """Addresses of one entry of a white list."""

    patterns: tuple[AddressPattern, ...] = ()
    is_every: bool = False

    def match(self, address: str) -> bool:
        """Returns whether the peer's IP address matches; an IPv4 address may come as an IPv6 one."""
        if self.is_every:
            return True
        if not self.patterns:
            return False
        parts = _parts_of(address)
        return any(pattern.matches(parts) for pattern in self.patterns)


NOBODY: Final = RemoteAddresses()
"""A white list without addresses."""


def parse_remote_addresses(text: str) -> RemoteAddresses:
    """Parses the addresses of one entry; blank text means none. Raises AccountMistake."""
    text = text.strip()
    if not text:
        return NOBODY
    if text in _EVERY:
        return RemoteAddresses(is_every=True)
    return RemoteAddresses(tuple(_parse_one(one, text) for one in _choices(text)))


def _choices(text: str) -> list[str]:
    """Returns the addresses that `a,b` and `10.0.0.{1,7}` stand for."""
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
    """Parses the parts before the first `*` or `-` as an address's beginning, in which `::` stands for zeros."""
    parts = text.split(":")
    first = next(index for index, part in enumerate(parts) if "*" in part or "-" in part)
    if "" in parts:
        tail = parts[first:]
        whole = IPv6Address(":".join([*parts[:first], *["0"] * len(tail)]))
        parts = [*whole.exploded.split(":")[: 8 - len(tail)], *tail]
    return _parse_range(parts, 8, 16, 0xFFFF)


def _parse_range(parts: list[str], count: int, base: int, most: int) -> AddressPattern:
    """Parses a range. Only parts that are `*` may follow it, and they may be left out. Raises ValueError."""
    ranges = [_range_of(part.strip(), base, most) for part in parts]
    first = next(index for index, part in enumerate(parts) if "*" in part or "-" in part)
    if first == 0 or len(parts) > count or any(part.strip() != "*" for part in parts[first + 1 :]):
        raise ValueError("a range must be followed by * only")
    return AddressPattern((*ranges, *[(0, most)] * (count - len(ranges))))


def _range_of(part: str, base: int, most: int) -> tuple[int, int]:
    if part == "*":
        return 0, most
    first, minus, last = part.partition("-")
    least, greatest = int(first, base), int(last if minus else first, base)
    if not 0 <= least <= greatest <= most or "_" in part:
        raise ValueError("out of range")
    return least, greatest


@lru_cache(maxsize=4096)
def _parts_of(address: str) -> _Parts:
    """Returns the parts of an IP address. Raises ValueError if it is none."""
    parsed = ip_address(address)
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is None:
            return _EIGHT_PARTS.unpack(parsed.packed)
        parsed = parsed.ipv4_mapped
    return tuple(parsed.packed)


def _mistake(text: str) -> AccountMistake:
    return AccountMistake(
        f"{text!r} is no address: an IP address, 10.0.0.*, 10.0.0.5-9, 10.0.0.{{1,7}}, or several joined by commas is expected"
    )
