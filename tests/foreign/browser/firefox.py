"""Starts Firefox for Playwright, and relays WebDriver BiDi between them: `python firefox.py PROGRAM ARGUMENTS...`.

Playwright sets emulated media in each new page. Debian's Firefox 153 has no such command, and Playwright closes the page when it
gets the error "unknown command". The relay replaces that error by a success, and passes on everything else.
"""

import asyncio
import contextlib
import json
import re
import sys
from asyncio import StreamReader, StreamWriter
from typing import Final

_NOT_NEEDED: Final = "emulation.setMediaFeaturesOverride"
_TEXT: Final = 1
_LOCALHOST: Final = "127.0.0.1"


async def main(command: list[str]) -> int:
    """Runs Firefox until it ends. Its line with the address of WebDriver BiDi gets the address of the relay."""
    firefox = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    assert firefox.stderr is not None
    async for line in firefox.stderr:
        listening = re.search(rb"WebDriver BiDi listening on ws://\S+:(\d+)", line)
        if listening:
            line = line.replace(listening[1], b"%d" % await start_relay(int(listening[1])))
        sys.stderr.buffer.write(line)
        sys.stderr.flush()
    return await firefox.wait()


async def start_relay(port: int) -> int:
    """Starts the relay to Firefox's port. Returns the relay's own port."""

    async def relay(from_client: StreamReader, to_client: StreamWriter) -> None:
        from_firefox, to_firefox = await asyncio.open_connection(_LOCALHOST, port)
        request = await from_client.readuntil(b"\r\n\r\n")
        # Firefox accepts a connection only if the header Host names its own port.
        to_firefox.write(re.sub(rb"(?im)^(host: [^:\r]+):\d+", rb"\g<1>:%d" % port, request))
        to_client.write(await from_firefox.readuntil(b"\r\n\r\n"))
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await asyncio.gather(pass_on(from_client, to_firefox), pass_frames_on(from_firefox, to_client))
        to_client.close()

    server = await asyncio.start_server(relay, _LOCALHOST, 0)
    own: int = server.sockets[0].getsockname()[1]
    return own


async def pass_on(reader: StreamReader, writer: StreamWriter) -> None:
    """Passes bytes on until the connection ends."""
    while received := await reader.read(1 << 16):
        writer.write(received)
        await writer.drain()
    writer.close()


async def pass_frames_on(reader: StreamReader, writer: StreamWriter) -> None:
    """Passes WebSocket frames of Firefox on. Frames of a server have no mask. Raises IncompleteReadError at their end."""
    while True:
        head, size = await reader.readexactly(1), (await reader.readexactly(1))[0]
        if size > 125:
            size = int.from_bytes(await reader.readexactly(2 if size == 126 else 8), "big")
        payload = await reader.readexactly(size)
        writer.write(frame(head, without_unknown(payload) if head[0] & 15 == _TEXT else payload))
        await writer.drain()


def frame(head: bytes, payload: bytes) -> bytes:
    """Returns a WebSocket frame with this first byte."""
    size = len(payload)
    if size < 126:
        return head + bytes([size]) + payload
    if size < 1 << 16:
        return head + b"\x7e" + size.to_bytes(2, "big") + payload
    return head + b"\x7f" + size.to_bytes(8, "big") + payload


def without_unknown(payload: bytes) -> bytes:
    """Returns a success if the message says that Firefox does not know the command that is not needed."""
    if b"unknown command" not in payload or _NOT_NEEDED.encode() not in payload:
        return payload
    message = json.loads(payload)
    if (message.get("error"), message.get("message")) != ("unknown command", _NOT_NEEDED):
        return payload
    return json.dumps({"type": "success", "id": message["id"], "result": {}}).encode()


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
