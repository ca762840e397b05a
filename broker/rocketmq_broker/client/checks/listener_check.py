"""Checks listeners before their first call. Each error describes the mistake and shows a valid listener."""

import inspect

from rocketmq_broker.client.errors import IllegalConfiguration
from rocketmq_broker.message.text.mistakes import kind_of

_TRANSACTION_METHODS = {"execute_local_transaction": ("message", "arg"), "check_local_transaction": ("message",)}


def check_message_listener(consumer: str, listener: object) -> None:
    """Raises IllegalConfiguration unless `listener` is a valid MessageListener. The error message begins with `consumer`."""
    who = f"{consumer}: the message listener"
    if isinstance(listener, type):
        raise IllegalConfiguration(f"{who} must be a function or a bound method, not {kind_of(listener)}")
    if not callable(listener):
        method = next((name for name in ("consume_message", "on_message") if callable(getattr(listener, name, None))), None)
        hint = f": pass its method {method}" if method else ": define one with def listener(messages, context)"
        raise IllegalConfiguration(f"{who} must be a function, not {kind_of(listener)}{hint}")
    _check_call(who, listener, ("messages", "context"), "a ConsumeStatus")


def check_transaction_listener(producer: str, listener: object) -> None:
    """Raises IllegalConfiguration unless `listener` has both methods of a TransactionListener.

    The error message begins with `producer`.
    """
    if isinstance(listener, type):
        raise IllegalConfiguration(f"{producer}: the transaction listener must be an instance, not {kind_of(listener)}")
    for name, arguments in _TRANSACTION_METHODS.items():
        method = getattr(listener, name, None)
        if not callable(method):
            raise IllegalConfiguration(f"{producer}: the transaction listener, {kind_of(listener)}, has no method {name}")
        _check_call(f"{producer}: {name} of the transaction listener", method, arguments, "a LocalTransactionState")


def is_async(listener: object) -> bool:
    """Returns whether the listener is an async function or an object with an async `__call__`."""
    return any(inspect.iscoroutinefunction(each) for each in (listener, _called(listener)))


def _called(function: object) -> object:
    return function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004 (the method)


def _check_call(who: str, function: object, arguments: tuple[str, ...], answer: str) -> None:
    call = _called(function)
    if any(inspect.isgeneratorfunction(each) or inspect.isasyncgenfunction(each) for each in (function, call)):
        raise IllegalConfiguration(f"{who} must return {answer}, but it is a generator function: do not use yield")
    try:
        signature = inspect.signature(function)  # type: ignore[arg-type]
    except ValueError:
        return  # some built-in functions have no signature
    try:
        signature.bind(*arguments)
    except TypeError as error:
        raise IllegalConfiguration(f"{who} must accept the arguments ({', '.join(arguments)}): {error}") from None
