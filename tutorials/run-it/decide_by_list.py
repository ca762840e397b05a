"""The solution of the exercise: decides the pending payments that are in the bank's list. Skips all other payments."""

import csv
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

ADMIN = [sys.executable, "-m", "rocketmq_broker.admin"]
FLAGS = {"booked": "--commit", "not booked": "--rollback"}


def decisions(pending: Iterable[Mapping[str, Any]], bank: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yields the transaction id, key and flag of each pending payment in the bank's list."""
    for transaction in pending:
        (key,) = transaction["keys"]
        if (flag := FLAGS.get(bank.get(key, ""))) is not None:
            yield str(transaction["transactionId"]), key, flag


def main(file: Path) -> None:
    """Decides payments according to a file, whose lines have the form key,outcome."""
    with file.open(newline="") as lines:
        bank = dict(csv.reader(lines))
    command = [*ADMIN, "pending", "--group", "payment-service", "--older-than", "10m", "--json"]
    pending = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    for transaction_id, key, flag in decisions(pending, bank):
        reason = f"{file.name}: {bank[key]}"
        subprocess.run([*ADMIN, "decide", transaction_id, flag, "--reason", reason], check=True, stdout=subprocess.DEVNULL)
        print(f"{key}: {flag.removeprefix('--').upper()}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
