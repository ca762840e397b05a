"""Other modules of the broker use this package only through TransactionalMessages."""

import re
from pathlib import Path

import rocketmq_broker.server.transactions as room

BROKER = Path(room.__file__).parents[2]


def test_nobody_outside_the_room_reaches_into_the_table_of_pending_transactions() -> None:
    outside = [path for path in BROKER.rglob("*.py") if Path(room.__file__).parent not in path.parents]
    reaching = [
        str(path.relative_to(BROKER)) for path in outside if re.search(r"(messages|transactions)\.table\b", path.read_text())
    ]
    assert len(outside) > 100
    assert reaching == []


def test_the_door_has_rocketmqs_verbs_and_no_more_than_twenty_methods() -> None:
    methods = {name for name, value in vars(room.TransactionalMessages).items() if callable(value) and name != "__init__"}

    assert {"prepare", "commit", "roll_back", "discard", "put_back", "resume"} <= methods
    assert len(methods) <= 20
