"""Prints dead letters."""

from collections.abc import Sequence

from rocketmq_broker.admin.dead_letters.content import DeadLetterContent
from rocketmq_broker.admin.dead_letters.dead_letter import DeadLetter, Treated
from rocketmq_broker.admin.dead_letters.finding import DeadLetterGroup
from rocketmq_broker.admin.output.durations import ago_text
from rocketmq_broker.admin.output.printing import print_facts, print_table
from rocketmq_broker.admin.output.times import time_text


def print_groups(rows: Sequence[tuple[str, DeadLetterGroup]], now_ms: int) -> None:
    """Prints consumer groups with dead letters, one per line."""
    columns = ("consumer group", "untreated", "stored", "latest")
    print_table(columns, [(address, _group_cells(group, now_ms)) for address, group in rows])


def print_letters(rows: Sequence[tuple[str, DeadLetter]], now_ms: int) -> None:
    """Prints the dead letters of a group, one per line."""
    columns = ("parked", "redeliveries", "retries", "topic", "keys", "message id", "offset message id", "since then")
    print_table(columns, [(address, _letter_cells(letter, now_ms)) for address, letter in rows])


def print_contents(rows: Sequence[tuple[str, DeadLetterContent]]) -> None:
    """Prints the complete content of each dead letter."""
    for address, content in rows:
        letter = content.letter
        print_facts(
            [
                ("consumer group", letter.consumer_group),
                ("topic", letter.topic),
                ("message id", letter.message_id),
                ("offset message id", letter.offset_message_id),
                ("keys", " ".join(letter.keys)),
                ("tag", letter.tags or ""),
                ("redeliveries", str(letter.redeliveries)),
                ("retries", str(letter.retries)),
                ("sent at", time_text(letter.born_ms)),
                ("parked at", time_text(letter.parked_ms)),
                *((f"{treatment.treatment} at", _treatment(treatment)) for treatment in content.history),
                *((f"property {name}", value) for name, value in content.properties.items()),
                ("body", content.body if content.body is not None else f"base64: {content.body_base64}"),
                ("problem", content.problem or ""),
                ("broker", address),
            ]
        )


def _group_cells(group: DeadLetterGroup, now_ms: int) -> list[str]:
    untreated = "unknown" if group.untreated is None else str(group.untreated)
    return [group.consumer_group, untreated, str(group.total), ago_text(group.newest_ms, now_ms)]


def _letter_cells(letter: DeadLetter, now_ms: int) -> list[str]:
    treatment = letter.treatment
    return [
        ago_text(letter.parked_ms, now_ms),
        str(letter.redeliveries),
        str(letter.retries),
        letter.topic,
        " ".join(letter.keys),
        letter.message_id,
        letter.offset_message_id,
        "" if treatment is None else f"{treatment.treatment}{_because(treatment)}",
    ]


def _treatment(treatment: Treated) -> str:
    when = time_text(treatment.at_ms)
    by = f" from {treatment.by}" if treatment.by else ""
    times = f", retry {treatment.retries}" if treatment.treatment == "retried" and treatment.retries else ""
    return f"{when}{by}{times}{_because(treatment)}"


def _because(treatment: Treated) -> str:
    return f": {treatment.reason}" if treatment.reason else ""
