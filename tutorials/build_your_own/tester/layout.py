"""Splits records and consume queue units into fields, which can be read, compared and displayed separately."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tutorials.build_your_own.tester.failed import Compared, Failed

MAGIC: Final = 0xDAA320A7
BLANK_MAGIC: Final = 0xCBD43194
"""The magic code with which RocketMQ marks the unused end of a commit log file."""

UNIT: Final = (("COMMIT LOG OFFSET", 8), ("SIZE", 4), ("HASH OF THE TAG", 8))
UNIT_SIZE: Final = 20

RECORD_HEAD: Final = (
    ("TOTALSIZE", 4),
    ("MAGICCODE", 4),
    ("BODYCRC", 4),
    ("QUEUEID", 4),
    ("FLAG", 4),
    ("QUEUEOFFSET", 8),
    ("PHYSICALOFFSET", 8),
    ("SYSFLAG", 4),
    ("BORNTIMESTAMP", 8),
    ("BORNHOST", 8),
    ("STORETIMESTAMP", 8),
    ("STOREHOST", 8),
    ("RECONSUMETIMES", 4),
    ("PREPAREDTRANSACTIONOFFSET", 8),
    ("BODYLENGTH", 4),
)
HEAD_SIZE: Final = sum(size for _, size in RECORD_HEAD)


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record or unit, with its position."""

    name: str
    at: int
    """The position of the field's first byte, relative to the beginning of the record or unit."""
    data: bytes

    @property
    def number(self) -> int:
        """The field's value as a signed big-endian number."""
        return int.from_bytes(self.data, signed=True)


@dataclass(frozen=True, slots=True)
class Record:
    """A record that the broker under test wrote. The record may be wrong."""

    fields: tuple[Field, ...]

    @property
    def size(self) -> int:
        """The size of the record in bytes."""
        return sum(len(field.data) for field in self.fields)

    @property
    def data(self) -> bytes:
        """The record's bytes."""
        return b"".join(field.data for field in self.fields)

    def bytes_of(self, name: str) -> bytes:
        """Returns a field's bytes."""
        return next(field.data for field in self.fields if field.name == name)

    def number(self, name: str) -> int:
        """Returns a field as a number."""
        return int.from_bytes(self.bytes_of(name), signed=True)

    @property
    def topic(self) -> str:
        """The topic of the record."""
        return self.bytes_of("topic").decode(errors="backslashreplace")

    @property
    def body(self) -> bytes:
        """The body of the record."""
        return self.bytes_of("body")

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties of the record, keyed by name."""
        pairs = (pair.partition("\x01") for pair in self.bytes_of("properties").decode(errors="backslashreplace").split("\x02"))
        return {name: value for name, _, value in pairs if name}

    @property
    def transaction_bits(self) -> int:
        """The transaction bits of SYSFLAG: 0, 4, 8 or 12."""
        return self.number("SYSFLAG") & 0xC

    def compare(self, wanted: Mapping[str, bytes]) -> tuple[Compared, ...]:
        """Returns each field in `wanted`, with its actual bytes and the expected bytes from `wanted`."""
        return tuple(Compared(field.name, field.data, wanted[field.name]) for field in self.fields if field.name in wanted)


def cut(layout: Sequence[tuple[str, int]], data: bytes) -> Iterator[Field]:
    """Yields the fields of a layout. `layout` contains the name and the size in bytes of each field."""
    at = 0
    for name, size in layout:
        yield Field(name, at, bytes(data[at : at + size]))
        at += size


def encode_properties(properties: Mapping[str, str]) -> str:
    """Encodes properties in the format of a record's properties field."""
    return "\x02".join(f"{name}\x01{value}" for name, value in properties.items())


def read_record(data: bytes, at: int, where: str) -> Record:
    """Reads the record that begins at position `at` of `data`.

    `where` describes the data in error messages. Raises Failed for impossible lengths.
    """
    place = f"{where}, from byte {at}"
    head = tuple(cut(RECORD_HEAD, data[at : at + HEAD_SIZE]))
    if len(data) - at < HEAD_SIZE:
        raise Failed(f"a record in {place}: it has {HEAD_SIZE} bytes before its body", f"{len(data) - at} bytes")
    numbers = {field.name: field.number for field in head}
    if numbers["MAGICCODE"] & 0xFFFFFFFF != MAGIC:
        magic = Compared("MAGICCODE", head[1].data, MAGIC.to_bytes(4))
        size = Compared("TOTALSIZE", head[0].data, head[0].data)
        raise Failed("a record with the magic code as its second field", "another number", fields=(size, magic), place=place)
    rest = tuple(_rest(data, at, numbers["BODYLENGTH"]))
    record = Record(head + rest)
    if record.size != numbers["TOTALSIZE"]:
        raise Failed(
            "a TOTALSIZE equal to the sum of the record's parts",
            f"{numbers['TOTALSIZE']}, but the parts add up to {record.size}",
            fields=record.compare({"TOTALSIZE": record.size.to_bytes(4)}),
            place=place,
            hint="TOTALSIZE counts itself. BODYLENGTH has 4 bytes, TOPICLENGTH 1, PROPERTIESLENGTH 2.",
        )
    return record


def read_records(data: bytes, where: str) -> list[Record]:
    """Reads consecutive records up to the end of the data. Raises Failed if a record has impossible lengths."""
    records, at = [], 0
    while at < len(data):
        records.append(read_record(data, at, where))
        at += records[-1].size
    return records


def shown(body: bytes) -> str:
    """Formats a message body for error messages."""
    text = body.decode(errors="backslashreplace")
    return f'"{text}"' if len(text) <= 40 else f'"{text[:37]}..."'


def _rest(data: bytes, at: int, body_length: int) -> Iterator[Field]:
    """Yields the fields of variable length, which follow the body length."""
    position = HEAD_SIZE
    for name, length_size in (("body", 0), ("topic", 1), ("properties", 2)):
        if length_size:
            length_field = Field(f"{name.upper()}LENGTH", position, bytes(data[at + position : at + position + length_size]))
            position += length_size
            yield length_field
            length = int.from_bytes(length_field.data)
        else:
            length = max(body_length, 0)
        yield Field(name, position, bytes(data[at + position : at + position + length]))
        position += length
