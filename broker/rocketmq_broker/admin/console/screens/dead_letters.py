"""Screens that show the groups with dead letters, the dead letters of a group, and a dead letter with its forms."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from rocketmq_broker.admin.console.form_action import FormAction
from rocketmq_broker.admin.console.pages import url
from rocketmq_broker.admin.console.screen import Screen
from rocketmq_broker.admin.console.screens.transaction import Witness
from rocketmq_broker.admin.console.visit import Visit
from rocketmq_broker.admin.dead_letters import treating
from rocketmq_broker.admin.dead_letters.content import DeadLetterContent, content_of
from rocketmq_broker.admin.dead_letters.dead_letter import DeadLetter
from rocketmq_broker.admin.dead_letters.finding import (
    DeadLetterGroup,
    FoundLetter,
    find_dead_letters,
    first_letters,
    groups_with_dead_letters,
)
from rocketmq_broker.admin.errors import Refused
from rocketmq_broker.admin.timeline.event import Event, in_order

_MAX_ROWS: Final = 50


class GroupLetters(NamedTuple):
    """The newest dead letters of a group."""

    group: str
    rows: list[tuple[str, DeadLetter]]
    now_ms: int
    max_rows: int = _MAX_ROWS


class LetterFacts(NamedTuple):
    """The complete content of a dead letter."""

    broker: str
    content: DeadLetterContent
    reasons: list[Event]
    """Events that explain why the consumer group failed. The message itself does not contain the cause."""


async def find_groups(visit: Visit) -> list[tuple[str, DeadLetterGroup]]:
    """Returns the groups of each broker that have dead letters. Raises CannotAsk or Refused."""
    return await (await visit.session()).rows(groups_with_dead_letters)


async def find_letters(visit: Visit) -> GroupLetters:
    """Returns the newest dead letters of the group. Raises CannotAsk or Refused."""
    group = visit.word("group")
    rows = await (await visit.session()).rows(lambda broker: first_letters(broker, group, _MAX_ROWS, lambda letter: True))
    return GroupLetters(group, rows, visit.now_ms())


def letter_screen(witnesses: Sequence[Witness]) -> Screen:
    """Returns the screen of a dead letter. `witnesses` return events that explain why the consumers failed."""

    async def find_letter(visit: Visit) -> list[LetterFacts]:
        """Returns the dead letters with this id or key. Raises CannotAsk, or Refused if there is none."""
        found = await find_dead_letters(await visit.session(), visit.word("message"), visit.word("group") or None)
        return [await _facts(one, witnesses) for one in found]

    return Screen("/dead-letter", "Dead letter", "dead_letter.html", find_letter, refresh_s=3.0)


async def _facts(found: FoundLetter, witnesses: Sequence[Witness]) -> LetterFacts:
    letter = found.letter
    known = [event for witness in witnesses for event in await witness(letter.message_id, letter.keys)]
    reasons = [event for event in known if letter.consumer_group in event.on_record]
    return LetterFacts(found.requests.address, await content_of(found), in_order(reasons))


async def retry(visit: Visit) -> str:
    """Delivers a dead letter to its group once more. Raises CannotAsk or Refused."""
    found = await _letter(visit)
    treatment = await treating.retry(found, again=visit.word("again") == "yes", reason=visit.word("reason"))
    letter = found.letter
    group = letter.consumer_group
    return f"retried: {letter.offset_message_id} is delivered to the consumer group {group} once more (retry {treatment.retries})"


async def dismiss(visit: Visit) -> str:
    """Dismisses a dead letter. Raises CannotAsk or Refused."""
    reason = visit.word("reason")
    if not reason:
        raise Refused("the reason is empty: enter why the message is no longer needed")
    found = await _letter(visit)
    await treating.dismiss(found, reason=reason)
    return f"dismissed: {found.letter.offset_message_id} of the consumer group {found.letter.consumer_group}; reason: {reason}"


async def _letter(visit: Visit) -> FoundLetter:
    message = visit.word("message")
    return treating.single_match(await find_dead_letters(await visit.session(), message, visit.word("group") or None), message)


def _back(visit: Visit) -> str:
    return url("/dead-letter", message=visit.word("message"), group=visit.word("group"))


SCREENS: Final = (
    Screen("/dead-letters", "Dead letters", "dead_letter_groups.html", find_groups, refresh_s=3.0),
    Screen("/dead-letters/group", "Dead letters", "dead_letters.html", find_letters, refresh_s=3.0),
)
ACTIONS: Final = (FormAction("/dead-letter/retry", retry, _back), FormAction("/dead-letter/dismiss", dismiss, _back))
