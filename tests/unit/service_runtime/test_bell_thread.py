import logging
import queue
import threading
from collections.abc import Callable, Iterator

import pytest

from service_runtime.inbox import bell_thread
from service_runtime.inbox.bell_thread import BellThread

NEVER_S = 3_600.0
PATIENCE_S = 60.0


class Calls:
    """The calls of a bell thread. Each call waits until the test returns its result."""

    def __init__(self) -> None:
        self._begun: queue.Queue[None] = queue.Queue()
        self._answers: queue.Queue[bool | Exception] = queue.Queue()

    def __call__(self) -> bool:
        self._begun.put(None)
        answer = self._answers.get(timeout=PATIENCE_S)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def begin(self) -> None:
        """Waits until a call has begun."""
        self._begun.get(timeout=PATIENCE_S)

    def answer(self, answer: bool | Exception) -> None:
        self._answers.put(answer)

    @property
    def has_none(self) -> bool:
        return self._begun.empty()


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
def start(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., BellThread]]:
    started: list[BellThread] = []

    def start(*, looks_every_s: float = NEVER_S) -> BellThread:
        monkeypatch.setattr(bell_thread, "LOOKS_EVERY_S", looks_every_s)
        bell = BellThread("a thread", calls)
        bell.start()
        started.append(bell)
        return bell

    yield start
    for bell in started:
        for _ in range(10):
            calls.answer(False)
        bell.stop()


def test_it_is_called_at_the_start_and_after_each_ring(start: Callable[..., BellThread], calls: Calls) -> None:
    bell = start()
    for _ in range(3):
        calls.begin()
        calls.answer(False)
        bell.ring()
    calls.begin()


def test_rings_during_a_call_are_answered_by_one_more_call(start: Callable[..., BellThread], calls: Calls) -> None:
    bell = start()
    calls.begin()
    for _ in range(5):
        bell.ring()
    calls.answer(False)
    calls.begin()
    calls.answer(False)
    bell.stop()
    assert calls.has_none


def test_it_is_called_until_it_has_no_more_to_do(start: Callable[..., BellThread], calls: Calls) -> None:
    bell = start()
    for has_more in (True, True, True, False):
        calls.begin()
        calls.answer(has_more)
    bell.stop()
    assert calls.has_none


def test_it_is_called_without_a_ring_because_a_ring_may_be_lost(start: Callable[..., BellThread], calls: Calls) -> None:
    start(looks_every_s=0.001)
    for _ in range(5):
        calls.begin()
        calls.answer(False)


def test_an_error_is_logged_once_and_the_thread_goes_on(
    start: Callable[..., BellThread], calls: Calls, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "service_runtime")
    start(looks_every_s=0.001)
    for answer in (ValueError("no"), ValueError("no"), ValueError("worse"), True, False):
        calls.begin()
        calls.answer(answer)
    calls.begin()
    assert caplog.messages == [
        "a thread: retrying every second: ValueError: no",
        "a thread: retrying every second: ValueError: worse",
        "a thread: works again",
    ]


def test_stopping_waits_for_a_running_call_and_calls_no_more(start: Callable[..., BellThread], calls: Calls) -> None:
    bell = start()
    calls.begin()
    stopping = threading.Thread(target=bell.stop)
    stopping.start()
    bell.ring()
    assert stopping.is_alive()
    calls.answer(True)
    stopping.join(PATIENCE_S)
    assert not stopping.is_alive()
    assert calls.has_none
