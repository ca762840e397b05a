"""Stage 1: the frames of requests and responses.

LENGTH 4 | SERIALIZETYPE 1 | HEADERLENGTH 3 | header, a JSON object | body

LENGTH is the number of bytes that follow it. All numbers are big-endian.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

RESPONSE_FLAG = 1
ONEWAY_FLAG = 2

NO_FIELDS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Command:
    """A request or a response."""

    code: int
    opaque: int
    flag: int = 0
    fields: Mapping[str, str] = field(default_factory=lambda: NO_FIELDS)
    """The header field extFields: the parameters of a request or the results of a response, as strings."""
    body: bytes = b""
    remark: str = ""

    @property
    def is_oneway(self) -> bool:
        """True if the sender of the request expects no response."""
        return self.flag & ONEWAY_FLAG != 0


class FrameReader:
    """Splits the bytes received on one connection into commands. Keeps an incomplete command until the rest arrives."""

    def __init__(self) -> None:
        self._kept = b""

    def feed(self, data: bytes) -> list[Command]:
        """Returns the commands that these bytes complete. Raises ValueError for an invalid frame."""
        self._kept += data
        commands = []
        while len(self._kept) >= 4:
            end = 4 + int.from_bytes(self._kept[:4])
            if len(self._kept) < end:
                break
            commands.append(decode(self._kept[4:end]))
            self._kept = self._kept[end:]
        return commands


def decode(frame: bytes) -> Command:
    """Decodes a frame without its LENGTH. Raises ValueError if the frame is invalid."""
    header_end = 4 + int.from_bytes(frame[1:4])
    header = json.loads(frame[4:header_end])
    return Command(
        code=header["code"],
        opaque=header["opaque"],
        flag=header.get("flag", 0),
        fields=header.get("extFields") or {},
        body=frame[header_end:],
        remark=header.get("remark") or "",
    )


def encode(command: Command) -> bytes:
    """Encodes a command as a frame with its LENGTH."""
    fields = {name: str(value) for name, value in command.fields.items()}
    header = json.dumps(
        {
            "code": command.code,
            "extFields": fields,
            "flag": command.flag,
            "language": "PYTHON",
            "opaque": command.opaque,
            "remark": command.remark,
            "serializeTypeCurrentRPC": "JSON",
            "version": 0,
        }
    ).encode()
    length = 4 + len(header) + len(command.body)
    return length.to_bytes(4) + len(header).to_bytes(4) + header + command.body
