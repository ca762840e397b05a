"""The command `timeline`. It works with Apache's brokers, too."""

from typing import Annotated

import typer

from rocketmq_broker.admin.errors import Refused
from rocketmq_broker.admin.options import AsJson, with_session
from rocketmq_broker.admin.output.printing import echo, print_json, print_table
from rocketmq_broker.admin.output.times import exact_time_text
from rocketmq_broker.admin.session import Session
from rocketmq_broker.admin.timeline.building import build_timeline
from rocketmq_broker.admin.timeline.event import Event, Timeline
from rocketmq_broker.admin.timeline.evidence import gather

Word = Annotated[str, typer.Argument(metavar="KEY", help="Transaction id, key of the message, or half offset.")]


@with_session
async def timeline(session: Session, word: Word, as_json: AsJson = False) -> None:
    """Show the history of a transaction: half message, check-backs, decision, deliveries and missing records."""
    rows = [(address, build_timeline(evidence)) for address, evidence in await session.rows(lambda broker: gather(broker, word))]
    if not rows:
        raise Refused(f"transaction not found: {word}; run rocketmq-admin message {word} to find any message")
    if as_json:
        print_json(rows)
        return
    for address, one in rows:
        _print(address, one)


def _print(address: str, timeline: Timeline) -> None:
    echo(f"Transaction {timeline.transaction_id} of {timeline.producer_group}, {timeline.state}")
    keys = f", keys {' '.join(timeline.keys)}" if timeline.keys else ""
    echo(f"topic {timeline.topic}{keys}, broker {address}")
    begun_ms = next((event.at_ms for event in timeline.events if event.at_ms is not None), 0)
    print_table(
        ("time", "ms", "what happened", "on record in"),
        [(address, _cells(event, begun_ms)) for event in timeline.events],
    )


def _cells(event: Event, begun_ms: int) -> tuple[str, ...]:
    since = "" if event.at_ms is None else f"{event.at_ms - begun_ms:+,}"
    return exact_time_text(event.at_ms), since, event.what, event.on_record
