"""Executes the steps that brokers perform, with the requests of rocketmq_broker.admin. Apache's brokers support them too."""

from pipelines.repair.message_again import REPAIR, contradiction, message_again, names_order
from pipelines.repair.plan import Action, RepairPlan, RepairStep, StepOutcome, done, done_before, failed
from rocketmq_broker.admin.broker_requests.discarded import discarded_with_id
from rocketmq_broker.admin.dead_letters.finding import find_dead_letters
from rocketmq_broker.admin.dead_letters.treating import retry
from rocketmq_broker.admin.errors import AdminError, CannotAsk
from rocketmq_broker.admin.messages.sending import send
from rocketmq_broker.admin.session import Session
from rocketmq_broker.message import MessageError, MessageExt, topics
from rocketmq_broker.message.record import Record, to_message
from rocketmq_broker.world import current_world


class BrokerSteps:
    """Executes `resume`, `retry` and `publish`. Checks the brokers' topics for steps that are already done."""

    def __init__(self, session: Session, plan: RepairPlan) -> None:
        self._session = session
        self._plan = plan

    async def carry_out(self, step: RepairStep) -> StepOutcome:
        """Executes the step, unless it is done. Returns `failed` if a broker refuses or does not respond. Raises no error."""
        actions = {Action.RESUME: self._resume, Action.RETRY: self._retry, Action.PUBLISH: self._publish}
        try:
            return await actions[step.action](step)
        except AdminError as error:
            return failed(str(error))

    async def _resume(self, step: RepairStep) -> StepOutcome:
        answers = await self._session.ask_each(lambda broker: discarded_with_id(broker, step.transaction_id or ""))
        self._require_all()
        found = [(broker, message) for broker, messages in answers for message in messages]
        if not found:
            return failed("no broker has a discarded message of this transaction")
        broker, message = max(found, key=lambda one: one[1].discarded_ms)
        if message.is_resumed:
            return done_before(f"{message.message_id} was already resumed")
        if message.discarded_ms > self._plan.as_of_ms:
            return failed("it was discarded again after the plan was made; check the order service, and make a new plan")
        await broker.resume(message.message_id)
        return done(f"{message.message_id} is pending again at broker {broker.address}")

    async def _retry(self, step: RepairStep) -> StepOutcome:
        found = await find_dead_letters(self._session, step.transaction_id or "", self._plan.consumer_group)
        self._require_all()
        planned = [one for one in found if one.letter.parked_ms <= self._plan.as_of_ms]
        if not planned:
            return failed("its dead letter is newer than the plan; check the credit service, and make a new plan")
        latest = planned[-1]
        treatment = latest.letter.treatment
        if treatment is None:
            await retry(latest, again=False, reason=f"repair {step.id}")
            return done(f"{latest.letter.offset_message_id} is redelivered to {self._plan.consumer_group}")
        if treatment.treatment == "retried":
            return done_before(f"{latest.letter.offset_message_id} was already retried")
        return failed(f"the dead letter {latest.letter.offset_message_id} was dismissed: {treatment.reason}")

    async def _publish(self, step: RepairStep) -> StepOutcome:
        assert step.order is not None
        destination = topics.retry_topic(self._plan.consumer_group) if step.to_group_only else self._plan.topic
        for message in await self._messages(destination, step.order.order_id):
            if message.properties.get(REPAIR) == step.id:
                return done_before(f"{message.offset_message_id} in {destination} is the message of this repair")
            if not step.to_group_only and names_order(message.body, step.order.order_id):
                return done_before(f"{message.offset_message_id} in {destination} is the message of this order")
        original = await self._original(step)
        if original is not None and (differs := contradiction(step.order, original.body)) is not None:
            return failed(differs)
        again = message_again(step, self._plan.topic, self._plan.consumer_group, original)
        address, sent = await send(self._session, again, current_world())
        return done(f"{sent.offset_message_id} sent to {destination} at broker {address}")

    async def _original(self, step: RepairStep) -> MessageExt | None:
        """Returns the delivered message or the half message, or None if no broker has either."""
        for topic in (self._plan.topic, topics.HALF_TOPIC, topics.CHECK_MAX_TIME_TOPIC):
            found = await self._messages(topic, step.transaction_id or "")
            if found:
                return found[-1]
        return None

    async def _messages(self, topic: str, key: str) -> list[MessageExt]:
        answers = await self._session.ask_each(lambda broker: broker.query(topic, key))
        self._require_all()
        return [message for _, records in answers for record in records if (message := _message_of(record)) is not None]

    def _require_all(self) -> None:
        """Raises CannotAsk if a broker has not responded, because it may have the message."""
        if self._session.failures:
            failure = self._session.failures.pop()
            raise CannotAsk(str(failure))


def _message_of(record: Record) -> MessageExt | None:
    """Returns the message of a record, or None if the record is damaged."""
    if not record.is_intact:
        return None
    try:
        return to_message(record)
    except MessageError:
        return None
