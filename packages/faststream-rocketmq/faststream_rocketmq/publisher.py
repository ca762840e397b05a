"""Publishers of plain messages and of transactional messages."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from faststream._internal.configs import PublisherSpecificationConfig
from faststream._internal.endpoint.call_wrapper import HandlerCallWrapper
from faststream._internal.endpoint.publisher import PublisherSpecification, PublisherUsecase
from faststream._internal.types import P_HandlerParams, PublisherMiddleware, T_HandlerReturn
from faststream.exceptions import FeatureNotSupportedException, SetupError
from faststream.response import PublishCommand
from faststream.specification.asyncapi.utils import resolve_payloads
from faststream.specification.schema import Message as SpecifiedMessage
from faststream.specification.schema import Operation, PublisherSpec

from faststream_rocketmq.config import OnTopic, RocketMQPublisherConfig
from faststream_rocketmq.messages import NO_REQUESTS, RocketMQCommand, RocketMQDelivery
from faststream_rocketmq.subscriber import RocketMQHandler
from rocketmq_broker.client import LocalTransaction, LocalTransactionState, Message, MessageExt, SendResult, TransactionSendResult


class RocketMQPublisherSpecification(OnTopic, PublisherSpecification[Any, Any]):
    """The AsyncAPI channel of a publisher."""

    @property
    def name(self) -> str:
        """Returns the title of the channel, or a name derived from the topic if the channel has no title."""
        return self.config.title_ or f"{self.topic}:Publisher"

    def get_schema(self) -> dict[str, PublisherSpec]:
        """Returns the AsyncAPI description of the channel, keyed by the channel's name."""
        message = SpecifiedMessage(title=f"{self.name}:Message", payload=resolve_payloads(self.get_payloads(), "Publisher"))
        operation = Operation(message=message, bindings=None)
        return {
            self.name: PublisherSpec(address=self.topic, description=self.config.description_, operation=operation, bindings=None)
        }


class RocketMQPublisher(OnTopic, PublisherUsecase):
    """Sends messages to one topic: the results of the handlers that it decorates, and messages passed to `publish`."""

    def __init__(self, config: RocketMQPublisherConfig, specification: PublisherSpecificationConfig) -> None:
        channel = RocketMQPublisherSpecification(config._outer_config, specification)
        self._topic = channel._topic = config.topic
        super().__init__(config, channel)
        self.tags, self.headers = config.tags, config.headers

    async def publish(
        self,
        message: Any,
        *,
        tags: str | None = None,
        keys: Iterable[str] = (),
        delay_time_level: int = 0,
        headers: Mapping[str, str] | None = None,
        correlation_id: str | None = None,
    ) -> SendResult:
        """Sends one message, and returns once the broker has stored it. Raises the same exceptions as `Producer.send`."""
        command = RocketMQCommand(
            message, tags=tags, keys=keys, delay_time_level=delay_time_level, headers=headers, correlation_id=correlation_id
        )
        sent: SendResult = await self._send(command, ())
        return sent

    async def _publish(self, cmd: PublishCommand, *, _extra_middlewares: Iterable[PublisherMiddleware]) -> None:
        await self._send(RocketMQCommand.of(cmd), _extra_middlewares)

    async def _send(self, command: RocketMQCommand, middlewares: Iterable[PublisherMiddleware]) -> Any:
        command.destination = command.destination or self.topic
        command.tags = command.tags or self.tags
        command.correlation_id = command.correlation_id or self._outer_config.id_generator()
        command.add_headers(self.headers, override=False)
        return await self._basic_publish(command, producer=self._outer_config.producer, _extra_middlewares=middlewares)

    async def request(self, *arguments: Any, **options: Any) -> NoReturn:
        """Raises FeatureNotSupportedException, because requests are not supported."""
        raise FeatureNotSupportedException(NO_REQUESTS)


class TransactionalPublisher(RocketMQPublisher):
    """Sends transactional messages: a half message, and then COMMIT or ROLLBACK according to the local transaction.

    `local_transaction` and `answers_check_backs` decorate the two handlers. Like handlers of subscribers, they receive the body
    in the annotated type, the message, dependencies and the context. Both handlers return a LocalTransactionState. An exception
    counts as UNKNOWN, so that the broker sends a check-back.
    """

    def __init__(
        self,
        config: RocketMQPublisherConfig,
        specification: PublisherSpecificationConfig,
        *,
        local: RocketMQHandler,
        check: RocketMQHandler,
    ) -> None:
        super().__init__(config, specification)
        self._local, self._check = local, check

    def local_transaction(
        self, function: Callable[P_HandlerParams, T_HandlerReturn]
    ) -> HandlerCallWrapper[P_HandlerParams, T_HandlerReturn]:
        """Decorates the handler that runs the local transaction. It runs after the broker has stored the half message."""
        return self._only_one(self._local, function)

    def answers_check_backs(
        self, function: Callable[P_HandlerParams, T_HandlerReturn]
    ) -> HandlerCallWrapper[P_HandlerParams, T_HandlerReturn]:
        """Decorates the handler that responds to check-backs.

        The handler must read the state of the transaction `message.transaction_id` from durable storage, and return it.
        """
        return self._only_one(self._check, function)

    def _only_one(
        self, handler: RocketMQHandler, function: Callable[P_HandlerParams, T_HandlerReturn]
    ) -> HandlerCallWrapper[P_HandlerParams, T_HandlerReturn]:
        if handler.calls:
            raise SetupError(f"the transactional publisher of topic {self.topic} already has the handler {handler.calls.name}")
        return handler(function)

    async def publish(  # type: ignore[override]
        self,
        message: Any,
        *,
        arg: object = None,
        tags: str | None = None,
        keys: Iterable[str] = (),
        headers: Mapping[str, str] | None = None,
        correlation_id: str | None = None,
    ) -> TransactionSendResult:
        """Sends one transactional message. The result contains the `local_transaction_state`.

        `arg` is available in the local transaction as `message.arg`. Raises ClientError if it is not certain that the half
        message was stored. In that case the local transaction has not run. Raises no exception after the local transaction
        has run.
        """
        command = RocketMQCommand(message, tags=tags, keys=keys, headers=headers, correlation_id=correlation_id)
        command.arg = arg
        sent: TransactionSendResult = await self._send(command, ())
        return sent

    async def _send(self, command: RocketMQCommand, middlewares: Iterable[PublisherMiddleware]) -> Any:
        command.is_transactional = True
        return await super()._send(command, middlewares)

    async def listener(self) -> LocalTransaction:
        """Starts both handlers, and returns the listener for the client. Raises SetupError if a handler is missing."""
        for handler, decorator in ((self._local, "local_transaction"), (self._check, "answers_check_backs")):
            if not handler.calls:
                raise SetupError(
                    f"the transactional publisher of topic {self.topic} has no `{decorator}` handler: decorate a function with it"
                )
            await handler.start()
        return LocalTransaction(self._execute, self._look_up)

    async def _execute(self, message: Message, arg: object) -> LocalTransactionState:
        return await _state(self._local, RocketMQDelivery(message, arg=arg))

    async def _look_up(self, message: MessageExt) -> LocalTransactionState:
        return await _state(self._check, RocketMQDelivery(message))


async def _state(handler: RocketMQHandler, delivery: RocketMQDelivery) -> LocalTransactionState:
    state: LocalTransactionState = (await handler.process_message(delivery)).body
    return state
