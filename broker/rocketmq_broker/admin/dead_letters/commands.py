"""The commands `dead-letters list`, `show`, `retry` and `dismiss`."""

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Annotated

import msgspec
import typer

from rocketmq_broker.admin.dead_letters.content import content_of
from rocketmq_broker.admin.dead_letters.dead_letter import DeadLetter, Treated
from rocketmq_broker.admin.dead_letters.finding import (
    FoundLetter,
    dead_letters_of,
    find_dead_letters,
    first_letters,
    groups_with_dead_letters,
)
from rocketmq_broker.admin.dead_letters.printing import print_contents, print_groups, print_letters
from rocketmq_broker.admin.dead_letters.treating import dismiss as dismiss_letter
from rocketmq_broker.admin.dead_letters.treating import refuse_if_treated, single_match
from rocketmq_broker.admin.dead_letters.treating import retry as retry_letter
from rocketmq_broker.admin.errors import AdminError
from rocketmq_broker.admin.options import AsJson, BrokerAddr, Limit, NameServers, OlderThan, now_ms, target_of, with_session
from rocketmq_broker.admin.output.printing import echo, print_json, print_listing
from rocketmq_broker.admin.running import run
from rocketmq_broker.admin.session import Session

ConsumerGroup = Annotated[str | None, typer.Option("-g", "--group", help="The consumer group; default: any.")]
Messages = Annotated[
    list[str] | None, typer.Argument(metavar="[MESSAGE]...", help="Message id, offset message id or key, as `list` prints them.")
]
AllOfGroup = Annotated[bool, typer.Option("--all", help="All untreated dead letters; needs --group.")]

app = typer.Typer(help="List, retry and dismiss the dead letters of consumer groups.", no_args_is_help=True)


@app.command("list")
@with_session
async def list_letters(
    session: Session,
    group: Annotated[str | None, typer.Argument(metavar="[GROUP]", help="A consumer group; default: list the groups.")] = None,
    treated: Annotated[bool, typer.Option("--treated", help="Include retried and dismissed dead letters.")] = False,
    oldest_first: Annotated[bool, typer.Option("--oldest-first", help="Start with the oldest instead of the latest.")] = False,
    older_than: OlderThan = "0",  # type: ignore[assignment]
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List the consumer groups with dead letters, or the dead letters of one group. Works with Apache's brokers."""
    started_ms = now_ms()
    if group is None:
        groups = await session.rows(groups_with_dead_letters)
        print_listing(groups, partial(print_groups, now_ms=started_ms), as_json=as_json, nothing="no dead letters")
        return

    def is_wanted(letter: DeadLetter) -> bool:
        return (treated or letter.treatment is None) and letter.parked_ms <= started_ms - older_than

    rows = await session.rows(lambda broker: first_letters(broker, group, limit, is_wanted, newest_first=not oldest_first))
    nothing = f"no dead letters of {group}" if treated else f"no untreated dead letters of {group}"
    print_listing(rows, partial(print_letters, now_ms=started_ms), as_json=as_json, nothing=nothing)


@app.command()
@with_session
async def show(
    session: Session,
    message: Annotated[str, typer.Argument(help="Message id, offset message id or key, as `list` prints them.")],
    group: ConsumerGroup = None,
    as_json: AsJson = False,
) -> None:
    """Show the properties, body and treatments of a dead letter. Works with Apache's brokers."""
    found = await find_dead_letters(session, message, group)
    rows = [(one.requests.address, await content_of(one)) for one in found]
    if as_json:
        print_json(rows)
    else:
        print_contents(rows)


@app.command()
def retry(
    context: typer.Context,
    messages: Messages = None,
    group: ConsumerGroup = None,
    all_of_group: AllOfGroup = False,
    again: Annotated[bool, typer.Option("--again", help="Even if it was retried or dismissed before.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be retried; change nothing.")] = False,
    reason: Annotated[str, typer.Option(help="The reason; it is stored with the retry.")] = "",
    as_json: AsJson = False,
    namesrv_addr: NameServers = None,
    broker_addr: BrokerAddr = None,
) -> None:
    """Deliver dead letters once more, only to their own group. Their count of redeliveries restarts from 0."""
    _refuse_unclear_choice(messages, group, all_of_group)

    async def treat(found: FoundLetter) -> Treated:
        if dry_run:
            refuse_if_treated(found, again=again)
            return Treated("would be retried", retries=found.letter.retries + 1)
        return await retry_letter(found, again=again, reason=reason)

    def describe(found: FoundLetter, treatment: Treated) -> str:
        letter = found.letter
        if dry_run:
            keys = " ".join(letter.keys) or letter.message_id
            where = f"{keys} of topic {letter.topic} would be delivered to the consumer group {letter.consumer_group} once more"
            return f"dry run, not retried: {letter.offset_message_id}, {where} (retry {treatment.retries})"
        return (
            f"retried: {letter.offset_message_id} is delivered to the consumer group {letter.consumer_group} once more "
            f"(retry {treatment.retries}, broker {found.requests.address})"
        )

    work = partial(
        _treat_each, messages=messages, group=group, treat=treat, describe=describe, as_json=as_json, is_dry_run=dry_run
    )
    run(target_of(context, namesrv_addr, broker_addr), work)


@app.command()
def dismiss(
    context: typer.Context,
    reason: Annotated[str, typer.Option(help="Why it is no longer needed; the reason is stored and shown.")],
    messages: Messages = None,
    group: ConsumerGroup = None,
    all_of_group: AllOfGroup = False,
    as_json: AsJson = False,
    namesrv_addr: NameServers = None,
    broker_addr: BrokerAddr = None,
) -> None:
    """Remove dead letters from the list. They are kept until they expire; `list --treated` shows them."""
    _refuse_unclear_choice(messages, group, all_of_group)
    if not reason.strip():
        raise typer.BadParameter("must not be empty", param_hint="--reason")

    def describe(found: FoundLetter, treatment: Treated) -> str:
        letter = found.letter
        return f"dismissed: {letter.offset_message_id} of the consumer group {letter.consumer_group}; reason: {treatment.reason}"

    treat = partial(dismiss_letter, reason=reason)
    work = partial(_treat_each, messages=messages, group=group, treat=treat, describe=describe, as_json=as_json)
    run(target_of(context, namesrv_addr, broker_addr), work)


async def _treat_each(
    session: Session,
    *,
    messages: list[str] | None,
    group: str | None,
    treat: Callable[[FoundLetter], Awaitable[Treated]],
    describe: Callable[[FoundLetter, Treated], str],
    as_json: bool,
    is_dry_run: bool = False,
) -> None:
    """Calls `treat` for the named dead letters, or for all untreated dead letters of the group. Adds failures to the session."""
    chosen = _named(session, messages, group) if messages else _untreated(session, group or "")
    treated: list[tuple[str, DeadLetter]] = []
    try:
        async for found in chosen:
            try:
                treatment = await treat(found)
            except AdminError as error:
                session.failures.append(error)
                continue
            treated.append((found.requests.address, msgspec.structs.replace(found.letter, treatment=treatment)))
            if not as_json:
                echo(describe(found, treatment))
    finally:  # print the letters treated so far if a broker becomes unreachable
        if as_json:
            print_json(treated)
    if not as_json and not treated and not session.failures:
        echo(f"no untreated dead letters of {group}")
    elif not as_json and is_dry_run:
        echo(f"{len(treated)} dead letters would be retried; nothing was changed")


async def _named(session: Session, messages: list[str], group: str | None) -> AsyncIterator[FoundLetter]:
    for message in messages:
        try:
            yield single_match(await find_dead_letters(session, message, group), message)
        except AdminError as error:
            session.failures.append(error)


async def _untreated(session: Session, group: str) -> AsyncIterator[FoundLetter]:
    for broker in session.brokers:
        async for found in dead_letters_of(broker, group, newest_first=False):
            if found.letter.treatment is None:
                yield found


def _refuse_unclear_choice(messages: list[str] | None, group: str | None, all_of_group: bool) -> None:
    if all_of_group and (messages or group is None):
        raise typer.BadParameter("--all requires --group, and cannot be combined with messages", param_hint="--all")
    if not all_of_group and not messages:
        raise typer.BadParameter("give a message, or --group GROUP --all", param_hint="MESSAGE")
