"""Readiness is checked in the background, at most once a second, and never blocks for long."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from flask import Flask

from service_runtime.http.readiness import Missing, Need, Readiness, unready_while_stopping
from tests.passing_time import SteadyClock


class Asked:
    """A dependency that counts its readiness checks."""

    def __init__(self, answer: Callable[[], str | None] = lambda: None) -> None:
        self.answer = answer
        self.times = 0

    def why_unready(self) -> str | None:
        self.times += 1
        return self.answer()


def readiness(*needed: Asked, within_s: float = 30.0, clock: Callable[[], float] = SteadyClock()) -> Readiness:
    needs = [Need(f"need {number}", one, "Mend it.") for number, one in enumerate(needed)]
    return Readiness(needs, within_s=within_s, steady_s=clock)


def test_each_thing_that_is_missing_is_named_with_what_to_do() -> None:
    found = readiness(Asked(lambda: "it is locked"), Asked(), Asked(lambda: "it is full")).missing()
    assert found == (Missing("need 0", "it is locked", "Mend it."), Missing("need 2", "it is full", "Mend it."))
    assert str(found[0]) == "need 0: it is locked. Mend it."


def test_an_answer_counts_for_a_second() -> None:
    one, clock = Asked(), SteadyClock()
    ready = readiness(one, clock=clock)
    for clock.now_s in (0.0, 0.5, 0.99, 1.0, 1.5):
        ready.missing()
    assert one.times == 2


def test_as_many_as_ask_at_once_ask_one_question() -> None:
    goes_on = threading.Event()
    one = Asked(lambda: None if goes_on.wait(30) else "late")
    ready = readiness(one)
    with ThreadPoolExecutor(8) as threads:
        asking = [threads.submit(ready.missing) for _ in range(8)]
        goes_on.set()
        assert [asked.result() for asked in asking] == [()] * 8
    assert one.times == 1


def test_a_question_that_hangs_is_asked_once_and_counts_as_no() -> None:
    goes_on = threading.Event()
    hanging, other = Asked(lambda: None if goes_on.wait(30) else "late"), Asked()
    ready = readiness(hanging, other, within_s=0.01)
    for _ in range(3):
        assert [(one.name, one.why) for one in ready.missing()] == [("need 0", "no answer within 0.01 s")]
    assert hanging.times == 1
    goes_on.set()


def test_a_mistake_of_ours_counts_as_no_and_is_asked_again() -> None:
    def fail() -> str | None:
        raise ZeroDivisionError("division by zero")

    one, clock = Asked(fail), SteadyClock()
    ready = readiness(one, clock=clock)
    assert [missing.why for missing in ready.missing()] == ["the check failed: division by zero"]
    one.answer, clock.now_s = lambda: None, 1.0
    assert ready.missing() == ()


def test_a_process_is_not_ready_once_it_stops() -> None:
    app, stopping = Flask(__name__), threading.Event()
    for path in ("/readyz", "/orders"):
        app.get(path, endpoint=path)(lambda: "fine")
    unready_while_stopping(app, stopping)
    client = app.test_client()
    assert client.get("/readyz").status_code == 200
    stopping.set()
    refused = client.get("/readyz")
    assert refused.status_code == 503
    assert refused.get_json()["detail"] == "process: it is stopping. Send requests to another instance."
    assert client.get("/orders").status_code == 200
