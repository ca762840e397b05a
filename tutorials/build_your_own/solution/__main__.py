"""The broker's process: reads the settings, listens on the port, and runs a task for each connection.

Run it with `-c broker.conf`.
"""

import argparse
import asyncio
from pathlib import Path

from tutorials.build_your_own.solution import frames, record
from tutorials.build_your_own.solution.check_back import CheckBack, CheckPolicy
from tutorials.build_your_own.solution.message_store import MessageStore
from tutorials.build_your_own.solution.requests import Client, Requests
from tutorials.build_your_own.solution.transactions import Transactions

LOOK_EVERY_S = 0.02


def read_settings(path: Path) -> dict[str, str]:
    """Returns the settings in broker.conf, which has one NAME=VALUE per line."""
    pairs = (line.partition("=") for line in path.read_text().splitlines() if not line.startswith("#"))
    return {name.strip(): value.strip() for name, equals, value in pairs if equals}


async def serve(settings: dict[str, str]) -> None:
    """Opens the store and the port, and serves clients until the process is killed."""
    host, port = settings["brokerIP1"], int(settings["listenPort"])
    policy = CheckPolicy(
        timeout_s=int(settings["transactionTimeOut"]) / 1000,
        interval_s=int(settings["transactionCheckInterval"]) / 1000,
        check_max=int(settings["transactionCheckMax"]),
    )
    root, log_file_size = Path(settings["storePathRootDir"]), int(settings["mappedFileSizeCommitLog"])
    store = MessageStore(root, record.host_bytes(host, port), log_file_size)
    transactions = Transactions(store, policy.timeout_s)
    transactions.recover(store.recover())
    check_back = CheckBack(transactions, policy)
    requests = Requests(store, transactions, check_back)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await serve_client(requests, check_back, reader, writer)

    async with await asyncio.start_server(connected, host, port):
        while True:
            check_back.look()
            await asyncio.sleep(LOOK_EVERY_S)


async def serve_client(
    requests: Requests, check_back: CheckBack, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Responds to the requests of one connection in order until the connection ends."""
    client = Client(record.host_bytes(*writer.get_extra_info("peername")[:2]), writer.write)
    received = frames.FrameReader()
    try:
        while data := await reader.read(65536):
            for request in received.feed(data):
                answer = requests.answer(request, client)
                if not request.is_oneway:
                    writer.write(frames.encode(answer))
            await writer.drain()
    except (ConnectionError, ValueError) as error:
        print(f"connection closed: {error!r}", flush=True)
    finally:
        check_back.forget(client.send)
        writer.close()


def main() -> None:
    """Parses the command line and runs the broker."""
    parser = argparse.ArgumentParser(prog="python -m tutorials.build_your_own.solution")
    parser.add_argument("-c", dest="settings", type=Path, required=True, help="broker.conf, as the tester writes it")
    asyncio.run(serve(read_settings(parser.parse_args().settings)))


if __name__ == "__main__":
    main()
