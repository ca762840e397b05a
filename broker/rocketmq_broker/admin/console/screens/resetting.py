"""Resets a consumer group, after a dry run that shows which messages will be redelivered or skipped."""

from datetime import datetime
from typing import Final, NamedTuple

from rocketmq_broker.admin.console.form_action import FormAction
from rocketmq_broker.admin.console.pages import url
from rocketmq_broker.admin.console.screen import Screen
from rocketmq_broker.admin.console.visit import Visit
from rocketmq_broker.admin.errors import Refused
from rocketmq_broker.admin.output.numbers import is_number
from rocketmq_broker.admin.progress.groups import groups_of
from rocketmq_broker.admin.progress.resetting import TO_THE_END, TO_THE_FIRST, ResetPlan, plan_reset, reset
from rocketmq_broker.admin.session import Session

_FIRST_YEAR: Final = 1970
_TO: Final = {"first": TO_THE_FIRST, "end": TO_THE_END}


class ResetFacts(NamedTuple):
    """The facts that the screen for resetting a group shows."""

    group: str
    topics: list[str]
    """The topics in which the group has offsets."""
    topic: str
    to: str
    """The target of the reset: `first`, `end` or `time`; empty before the dry run."""
    time: str
    plans: list[ResetPlan]
    """A plan for each broker where the group has offsets in the topic; empty before the dry run."""
    refusal: str | None
    """The reason why there is no plan; None if there is a plan, or if the visitor has chosen nothing yet."""

    @property
    def again(self) -> int:
        """The number of messages that will be delivered again."""
        return sum(plan.again for plan in self.plans)

    @property
    def skipped(self) -> int:
        """The number of messages that will never be delivered to the group."""
        return sum(plan.skipped for plan in self.plans)

    @property
    def members(self) -> int:
        """The number of members. This is the maximum over the brokers, because each member connects to all brokers."""
        return max((plan.members for plan in self.plans), default=0)


async def find(visit: Visit) -> ResetFacts:
    """Returns the facts for the form, including the plans once a topic and a target are chosen. Raises Refused or CannotAsk."""
    group, topic, to, session = visit.word("group"), visit.word("topic"), visit.word("to"), await visit.session()
    found = await session.rows(lambda broker: groups_of(broker, every_one=True))
    names = sorted({name for _, one in found if one.group == group for name in one.topics})
    if not names:
        raise Refused(f"the consumer group {group} has no offsets: there is nothing to reset")
    plans: list[ResetPlan] = []
    refusal = None
    if topic and to:
        try:
            plans = await _plans(visit, session)
        except Refused as error:
            refusal = f"{str(error)[:1].upper()}{str(error)[1:]}."
    return ResetFacts(group, names, topic, to, visit.word("time"), plans, refusal)


async def _plans(visit: Visit, session: Session) -> list[ResetPlan]:
    """Returns a plan for each broker where the group has offsets. Raises Refused or CannotAsk."""
    group, topic, time_ms = visit.word("group"), visit.word("topic"), _time_ms(visit)
    answers = await session.ask_each(lambda broker: plan_reset(broker, group, topic, time_ms))
    plans = [plan for _, plan in answers if plan is not None]
    if not plans:
        raise Refused(f"the consumer group {group} has no offsets in the topic {topic}")
    return plans


async def do_reset(visit: Visit) -> str:
    """Resets the group at each broker where it has offsets. Raises Refused or CannotAsk."""
    group, topic, time_ms = visit.word("group"), visit.word("topic"), _time_ms(visit)
    if visit.word("is_sure") != "yes":
        raise Refused("confirm the reset: it cannot be undone")
    done = await (await visit.session()).ask_each(lambda broker: reset(broker, group, topic, time_ms))
    plans = [plan for _, plan in done if plan is not None]
    if not plans:
        raise Refused(f"the consumer group {group} has no offsets in the topic {topic}")
    again, skipped = sum(plan.again for plan in plans), sum(plan.skipped for plan in plans)
    how = "its members follow within seconds" if any(plan.members for plan in plans) else "its offsets are set"
    return f"reset: the group {group} in {topic}, redelivered messages: {again}, skipped: {skipped}; {how}"


def _time_ms(visit: Visit) -> int:
    """Returns the form's target in milliseconds, as the argument `time_ms` of `plan_reset`.

    Raises Refused if the target is invalid.
    """
    to, text = visit.word("to"), visit.word("time")
    if to in _TO:
        return _TO[to]
    if to != "time":
        raise Refused("choose a target: the first message, the end, or a time")
    if is_number(text) and int(text) > 0:
        return int(text)
    try:
        time = datetime.fromisoformat(text)
        time_ms = int(time.timestamp() * 1000) if time.year >= _FIRST_YEAR else 0  # Windows cannot convert earlier times
    except (ValueError, OverflowError, OSError):
        raise Refused(f"invalid time {text!r}: expected, for example, 2026-01-31T12:00") from None
    if time_ms <= 0:
        raise Refused(f"time {text} is before 1970")
    return time_ms


SCREEN: Final = Screen(
    "/group/reset",
    "Reset a consumer group",
    "reset.html",
    find,
    refresh_s=None,
    heading=lambda visit: f"Reset {visit.word('group')}",
)


def _form_at(visit: Visit) -> str:
    return url("/group/reset", **{name: visit.word(name) for name in ("group", "topic", "to", "time")})


ACTION: Final = FormAction("/group/reset/do", do_reset, lambda visit: url("/group", group=visit.word("group")), form_at=_form_at)
