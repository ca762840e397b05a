"""Listeners with an unusable signature are refused before they lose a message."""

from functools import partial
from typing import Any

import pytest

from rocketmq_broker.client import ConsumeStatus, IllegalConfiguration, LocalTransactionState
from rocketmq_broker.client.checks.listener_check import check_message_listener, check_transaction_listener, is_async


def plain(messages: Any, context: Any) -> ConsumeStatus:
    return ConsumeStatus.CONSUME_SUCCESS


async def asynchronous(messages: Any, context: Any) -> ConsumeStatus:
    return ConsumeStatus.CONSUME_SUCCESS


def generator(messages: Any, context: Any) -> Any:
    yield ConsumeStatus.CONSUME_SUCCESS


async def asynchronous_generator(messages: Any, context: Any) -> Any:
    yield ConsumeStatus.CONSUME_SUCCESS


class WithCall:
    def __call__(self, messages: Any, context: Any) -> ConsumeStatus:
        return ConsumeStatus.CONSUME_SUCCESS


class WithAsyncCall:
    async def __call__(self, messages: Any, context: Any) -> ConsumeStatus:
        return ConsumeStatus.CONSUME_SUCCESS


class LikeJava:
    def consume_message(self, messages: Any, context: Any) -> ConsumeStatus:
        return ConsumeStatus.CONSUME_SUCCESS


def more(first: Any, messages: Any, context: Any) -> ConsumeStatus:
    return ConsumeStatus.CONSUME_SUCCESS


@pytest.mark.parametrize(
    "listener",
    [
        plain,
        WithCall(),
        LikeJava().consume_message,
        partial(more, 1),
        lambda *arguments: None,
        print,
        asynchronous,
        WithAsyncCall(),
    ],
)
def test_whatever_takes_messages_and_context_is_a_listener(listener: Any) -> None:
    check_message_listener("consumer g", listener)


@pytest.mark.parametrize(
    ("listener", "sentence"),
    [
        (None, "consumer g: the message listener must be a function, not None: define one with def listener(messages, context)"),
        ("listener", "must be a function, not a str"),
        (LikeJava(), "must be a function, not a LikeJava: pass its method consume_message"),
        (LikeJava, "must be a function or a bound method, not the class LikeJava"),
        (asynchronous_generator, "must return a ConsumeStatus, but it is a generator function: do not use yield"),
        (generator, "must return a ConsumeStatus, but it is a generator function: do not use yield"),
        (lambda messages: None, "must accept the arguments (messages, context): too many positional arguments"),
        (more, "must accept the arguments (messages, context): missing a required argument: 'context'"),
    ],
)
def test_what_is_no_message_listener_is_told_how_one_looks(listener: Any, sentence: str) -> None:
    with pytest.raises(IllegalConfiguration) as refused:
        check_message_listener("consumer g", listener)
    assert sentence in str(refused.value)


class Right:
    def execute_local_transaction(self, message: Any, arg: Any) -> LocalTransactionState:
        return LocalTransactionState.COMMIT_MESSAGE

    def check_local_transaction(self, message: Any) -> LocalTransactionState:
        return LocalTransactionState.COMMIT_MESSAGE


class WithoutCheck:
    def execute_local_transaction(self, message: Any, arg: Any) -> LocalTransactionState:
        return LocalTransactionState.COMMIT_MESSAGE


class WithoutArg(Right):
    def execute_local_transaction(self, message: Any) -> LocalTransactionState:  # type: ignore[override]
        return LocalTransactionState.COMMIT_MESSAGE


class AsynchronousCheck(Right):
    async def check_local_transaction(self, message: Any) -> LocalTransactionState:  # type: ignore[override]
        return LocalTransactionState.COMMIT_MESSAGE


@pytest.mark.parametrize("listener", [Right(), AsynchronousCheck()])
def test_an_object_with_both_methods_is_a_transaction_listener(listener: Any) -> None:
    check_transaction_listener("producer p", listener)


@pytest.mark.parametrize("listener", [asynchronous, partial(asynchronous), WithAsyncCall(), WithAsyncCall().__call__])
def test_an_async_function_is_known_however_it_is_wrapped(listener: Any) -> None:
    assert is_async(listener)


@pytest.mark.parametrize("listener", [plain, partial(plain), WithCall(), print, None, generator])
def test_other_functions_are_not_taken_for_async_ones(listener: Any) -> None:
    assert not is_async(listener)


@pytest.mark.parametrize(
    ("listener", "sentence"),
    [
        (None, "producer p: the transaction listener, None, has no method execute_local_transaction"),
        (plain, "the transaction listener, a function, has no method execute_local_transaction"),
        (WithoutCheck(), "the transaction listener, a WithoutCheck, has no method check_local_transaction"),
        (Right, "the transaction listener must be an instance, not the class Right"),
        (
            WithoutArg(),
            "execute_local_transaction of the transaction listener must accept the arguments (message, arg)",
        ),
    ],
)
def test_what_is_no_transaction_listener_is_told_what_it_lacks(listener: Any, sentence: str) -> None:
    with pytest.raises(IllegalConfiguration) as refused:
        check_transaction_listener("producer p", listener)
    assert sentence in str(refused.value)
