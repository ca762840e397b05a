"""A minimal broker with one typical mistake: `python first_broker.py MISTAKE -c FILE`. It handles only HEART_BEAT."""

import json
import os
import socket
import sys

MISTAKE = sys.argv[1]


def answer(opaque: int, code: int) -> bytes:
    opaque = 0 if MISTAKE == "forgets the opaque" else opaque
    fields = {"queueId": 2 if MISTAKE == "writes numbers" else "2"}
    flag = 0 if MISTAKE == "forgets the flag" else 1
    header = {"code": code, "flag": flag, "opaque": opaque, "extFields": fields, "language": "OTHER", "version": 0}
    text = (str(header) if MISTAKE == "writes no JSON" else json.dumps(header)).encode()
    length = 4 + len(text) + (4 if MISTAKE == "counts LENGTH itself" else 0)
    order = "little" if MISTAKE == "writes little-endian" else "big"
    return length.to_bytes(4, order) + len(text).to_bytes(4, order) + text  # type: ignore[arg-type]


def exactly(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = client.recv(size - len(data))
        if not more:
            raise ConnectionError
        data += more
    return data


def serve(client: socket.socket) -> None:
    frame = exactly(client, int.from_bytes(exactly(client, 4)))
    request = json.loads(frame[4 : 4 + int.from_bytes(frame[1:4])])
    if MISTAKE == "speaks text":
        client.sendall(b"OK, got it\n")
    elif MISTAKE == "crashes":
        print(request["extFields"]["topic"])
    elif MISTAKE == "hangs up on what it does not know" and request["code"] != 34:
        raise ConnectionError
    elif MISTAKE != "answers nothing" and not request["flag"] & 2:
        client.sendall(answer(request["opaque"], 0 if request["code"] == 34 else 3))


server = socket.create_server(("127.0.0.1", int(os.environ["listenPort"])))  # noqa: SIM112
while True:
    with server.accept()[0] as connection:
        try:
            while True:
                serve(connection)
        except ConnectionError:
            pass
