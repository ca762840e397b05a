"""Records frames between Apache's programs until it is interrupted.

Usage: `record.py OUTPUT LISTEN_PORT:TARGET_PORT:NAME...`

Each pair of ports is a proxy on 127.0.0.1. Responses are changed in one respect: the port of a target is replaced by the port of
its proxy, so that connections to the routes' addresses use the proxy. Both ports must have the same number of digits. A few
frames of each kind are written as lines of JSON. `request_code` is the code of the request, also in a response's line.
"""

import asyncio
import json
import struct
import sys
from collections import Counter

KEPT_OF_A_KIND = 3
MAX_KEPT_LENGTH = 6000


class Recorder:
    def __init__(self, output, replacements):
        self._output = output
        self._replacements = replacements
        self._kept = Counter()

    def keep(self, sender, frame, request_codes):
        serializer, header = frame[4], frame[8 : 8 + int.from_bytes(frame[5:8])]
        if serializer == 0:
            fields = json.loads(header)
            code, opaque, flag = fields["code"], fields["opaque"], fields["flag"]
        else:
            code, _, _, opaque, flag = struct.unpack_from(">hbhii", header)
        is_response = bool(flag & 1)
        request_code = request_codes.pop(opaque, None) if is_response else code
        if not is_response:
            request_codes[opaque] = code
        kind = (sender, serializer, request_code, code, is_response)
        if self._kept[kind] < KEPT_OF_A_KIND and len(frame) <= MAX_KEPT_LENGTH:
            self._kept[kind] += 1
            line = {"from": sender, "request_code": request_code, "code": code, "is_response": is_response, "frame": frame.hex()}
            self._output.write(json.dumps(line) + "\n")
            self._output.flush()

    def rerouted(self, frame):
        for target, proxy in self._replacements:
            frame = frame.replace(target, proxy)
        return frame


async def pump(reader, writer, sender, recorder, own_requests, other_requests):
    try:
        while True:
            length = await reader.readexactly(4)
            frame = length + await reader.readexactly(int.from_bytes(length))
            is_answer = frame[4:].find(b'"flag":1') > 0 if frame[4] == 0 else struct.unpack_from(">i", frame, 17)[0] & 1
            recorder.keep(sender, frame, other_requests if is_answer else own_requests)
            writer.write(recorder.rerouted(frame))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main(output, pairs):
    pairs = [pair.split(":") for pair in pairs]
    replacements = [(f":{target}".encode(), f":{listen}".encode()) for listen, target, _ in pairs]
    recorder = Recorder(output, replacements)
    for listen, target, name in pairs:

        async def accept(reader, writer, target=target, name=name):
            target_reader, target_writer = await asyncio.open_connection("127.0.0.1", int(target))
            client_requests, target_requests = {}, {}
            await asyncio.gather(
                pump(reader, target_writer, f"client of {name}", recorder, client_requests, target_requests),
                pump(target_reader, writer, name, recorder, target_requests, client_requests),
            )

        await asyncio.start_server(accept, "127.0.0.1", int(listen))
    await asyncio.Event().wait()


if __name__ == "__main__":
    with open(sys.argv[1], "w") as file:
        asyncio.run(main(file, sys.argv[2:]))
