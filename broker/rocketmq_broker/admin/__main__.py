"""The command line of `rocketmq-admin`, also run by `python -m rocketmq_broker.admin`.

Exit codes: 0 success; 1 a broker rejected the request, or nothing was found; 2 the command line is invalid, or a broker could not
be reached.
"""

import sys

if __name__ == "__main__" and "console" in sys.argv[1:]:
    from rocketmq_broker.stop_signals import exit_at_once_on_stop_signals

    exit_at_once_on_stop_signals()

import logging
from functools import partial
from io import TextIOWrapper
from typing import Annotated

import typer

from rocketmq_broker.admin import decisions
from rocketmq_broker.admin.broker_requests.discarded import DiscardedMessage, newest_discarded
from rocketmq_broker.admin.console_command import console
from rocketmq_broker.admin.dead_letters.commands import app as dead_letters
from rocketmq_broker.admin.errors import Refused
from rocketmq_broker.admin.health.commands import doctor
from rocketmq_broker.admin.messages.commands import message, send, tail
from rocketmq_broker.admin.options import (
    AsJson,
    BrokerAddr,
    Group,
    Limit,
    NameServers,
    OlderThan,
    Topic,
    duration,
    now_ms,
    target_of,
    with_session,
)
from rocketmq_broker.admin.output import tables
from rocketmq_broker.admin.output.printing import echo, print_error, print_json, print_listing
from rocketmq_broker.admin.progress.commands import groups, topics
from rocketmq_broker.admin.running import CANNOT_ASK as BAD_COMMAND_LINE
from rocketmq_broker.admin.running import run
from rocketmq_broker.admin.session import Session, Target
from rocketmq_broker.admin.timeline.commands import timeline
from rocketmq_broker.logs import log_to_stderr
from rocketmq_broker.message.times import FOREVER_MS
from rocketmq_broker.protocol.bodies.transaction_admin import TransactionInfo
from rocketmq_broker.protocol.headers.transaction_admin import (
    ListDecidedTransactionsRequestHeader,
    ListPendingTransactionsRequestHeader,
    ShowTransactionRequestHeader,
)

app = typer.Typer(
    name="rocketmq-admin",
    help="Inspect topics, groups and messages; inspect and repair transactions and dead letters.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in (topics, groups, tail, message, send, timeline, doctor, console):
    app.command()(command)
app.add_typer(dead_letters, name="dead-letters")


@app.callback()
def choose(context: typer.Context, namesrv_addr: NameServers = None, broker_addr: BrokerAddr = None) -> None:
    """Inspect topics, groups and messages; inspect and repair transactions and dead letters."""
    context.obj = Target()
    context.obj = target_of(context, namesrv_addr, broker_addr)


@app.command()
@with_session
async def pending(
    session: Session,
    topic: Topic = None,
    group: Group = None,
    older_than: OlderThan = "0",  # type: ignore[assignment]
    limit: Limit = 100,
    after: Annotated[int, typer.Option(min=-1, help="Continue after this half offset, the last one of the previous page.")] = -1,
    as_json: AsJson = False,
) -> None:
    """List pending transactions, oldest first."""
    header = ListPendingTransactionsRequestHeader(topic, group, older_than, after, limit)
    answers = await session.ask_each(lambda broker: broker.list_pending(header))
    rows = [(broker.address, info) for broker, found in answers for info in found.transactions]
    if as_json:
        print_json(rows)
        return
    if rows:
        tables.print_pending(rows)
    total = sum(found.total for _, found in answers)
    echo(f"{len(rows)} of {total} pending transactions" if total else "no pending transactions")
    for broker, found in answers:
        if found.next_after is not None:
            echo(f"next page: pending --broker-addr {broker.address} --after {found.next_after}")


@app.command()
@with_session
async def show(
    session: Session,
    transaction: Annotated[str, typer.Argument(help="Transaction id, key of the message, or half offset.")],
    as_json: AsJson = False,
) -> None:
    """Show a transaction, pending or decided."""
    half_offset = decisions.half_offset_of(transaction)
    header = ShowTransactionRequestHeader(transaction, transaction, half_offset)
    answers = await session.ask_each(lambda broker: broker.show(header))
    rows = [(broker.address, info) for broker, found in answers for info in found.transactions]
    if as_json:
        print_json(rows)
    elif rows:
        tables.print_transactions(rows)
    if not rows:
        raise Refused(f"transaction not found: {transaction}")


@app.command()
def decide(
    context: typer.Context,
    transaction: Annotated[str, typer.Argument(help="Transaction id or half offset.")],
    reason: Annotated[str, typer.Option(help="The reason; it is stored with the decision.")],
    commit: Annotated[bool, typer.Option("--commit", help="COMMIT: deliver the message.")] = False,
    rollback: Annotated[bool, typer.Option("--rollback", help="ROLLBACK: never deliver the message.")] = False,
    as_json: AsJson = False,
    namesrv_addr: NameServers = None,
    broker_addr: BrokerAddr = None,
) -> None:
    """Decide a pending transaction by hand. A decision cannot be undone."""
    if commit == rollback:
        raise typer.BadParameter("give exactly one of --commit and --rollback", param_hint="--commit, --rollback")
    if not reason.strip():
        raise typer.BadParameter("must not be empty", param_hint="--reason")

    async def work(session: Session) -> None:
        broker, info = await decisions.decide(session, transaction, commit=commit, reason=reason)
        if as_json:
            print_json([(broker.address, info)])
            return
        echo(
            f"{info.state}: the transaction at half offset {info.half_offset} of {info.producer_group} "
            f"(topic {info.topic}, broker {broker.address}); reason: {info.reason}"
        )

    run(target_of(context, namesrv_addr, broker_addr), work)


@app.command()
@with_session
async def decided(
    session: Session,
    limit: Annotated[
        int, typer.Option("-l", "--limit", min=1, max=64, help="The maximum number of lines from each broker.")
    ] = 50,
    before: Annotated[
        int, typer.Option(parser=duration, metavar="DURATION", help="Only decisions older than this, such as 2d.")
    ] = "0",  # type: ignore[assignment]
    as_json: AsJson = False,
) -> None:
    """List transactions decided by hand, with their reasons, latest first."""
    before_ms = now_ms() - before if before else FOREVER_MS
    header = ListDecidedTransactionsRequestHeader(before_ms, limit)
    answers = await session.ask_each(lambda broker: broker.list_decided(header))
    rows: list[tuple[str, TransactionInfo]] = [(broker.address, info) for broker, found in answers for info in found.transactions]
    print_listing(rows, tables.print_decided, as_json=as_json, nothing="no transactions decided by hand")


@app.command()
@with_session
async def discarded(
    session: Session,
    topic: Topic = None,
    group: Group = None,
    older_than: OlderThan = "0",  # type: ignore[assignment]
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List messages discarded after too many check-backs (TRANS_CHECK_MAX_TIME_TOPIC), latest first."""
    started_ms = now_ms()

    def is_wanted(message: DiscardedMessage) -> bool:
        return (
            topic in (None, message.topic)
            and group in (None, message.producer_group)
            and (not older_than or message.discarded_ms <= started_ms - older_than)
        )

    rows = await session.rows(lambda broker: newest_discarded(broker, limit, is_wanted))
    table = partial(tables.print_discarded, now_ms=started_ms)
    print_listing(rows, table, as_json=as_json, nothing="no discarded messages")


@app.command()
@with_session
async def resume(
    session: Session,
    message: Annotated[str, typer.Argument(help="Message id as `discarded` prints it, or transaction id.")],
    as_json: AsJson = False,
) -> None:
    """Resume the check-backs of a discarded message (RESUME_CHECK_HALF_MESSAGE). Works with Apache's brokers."""
    broker, resumed = await decisions.resume(session, message)
    if as_json:
        print_json([(broker.address, resumed)])
    else:
        echo(f"resumed: {resumed.message_id} is pending again at broker {broker.address}, its count of check-backs is 0")


def main() -> None:
    """Runs the command line. Exits with status 0 if the reader of its output closes the pipe."""
    log_to_stderr(logging.WARNING)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # the terminal's encoding may lack some characters
    if invalid := next((word for word in sys.argv[1:] if not _is_text(word)), None):
        print_error(f"{invalid} is not valid text in the encoding of this terminal")
        raise SystemExit(BAD_COMMAND_LINE)
    try:
        app()
    except BrokenPipeError:
        sys.stderr.close()
        raise SystemExit(0) from None


def _is_text(word: str) -> bool:
    """Returns whether the argument is valid Unicode text.

    Python represents undecodable bytes as surrogates, which cannot be encoded.
    """
    return not any("\ud800" <= character <= "\udfff" for character in word)


if __name__ == "__main__":
    main()
