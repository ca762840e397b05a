import io
import json
import logging
from collections.abc import Iterator
from uuid import uuid4

import pytest
from flask import Flask

from rocketmq_broker.message import Message
from rocketmq_broker.message.properties import UNIQUE_KEY
from service_runtime.http.requests import name_requests
from service_runtime.observing.context import carried_properties, current_ids, logging_about, logging_about_message
from service_runtime.observing.log_format import ContextFormatter, JsonFormatter

logger = logging.getLogger("shop")


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """Yields the stream to which the logger writes."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logger.addHandler(handler)
    yield stream
    logger.removeHandler(handler)


def format_with(formatter: logging.Formatter) -> None:
    logger.handlers[0].setFormatter(formatter)


def test_a_line_ends_with_what_it_is_about_and_only_while_that_is_worked_on(written: io.StringIO) -> None:
    format_with(ContextFormatter())
    with logging_about(request_id="r1"), logging_about(order_id="o1", transaction_id=None):
        logger.warning("away")
    logger.warning("back")
    first, second = written.getvalue().splitlines()
    assert first.endswith("WARNING shop: away [request_id=r1 order_id=o1]")
    assert second.endswith("WARNING shop: back")


def test_a_line_in_json_is_one_object_whatever_strangers_write(written: io.StringIO) -> None:
    format_with(JsonFormatter())
    with logging_about(order_id='o"1'):
        try:
            raise ValueError("two\nlines")
        except ValueError:
            logger.exception('an "odd"\n{"level": "forged"} %s', "\x1b[31m")
    (line,) = written.getvalue().splitlines()
    found = json.loads(line)
    assert (found["level"], found["logger"], found["order_id"]) == ("ERROR", "shop", 'o"1')
    assert "\x1b" not in found["message"]
    assert "ValueError" in found["traceback"]
    assert found["time"].endswith("Z")


def test_a_message_carries_the_request_to_whoever_works_on_it() -> None:
    assert carried_properties() == {}
    with logging_about(request_id="r1"):
        message = Message.of("orders", b"", keys=["o1"], user_properties=carried_properties())
    with logging_about_message(message.with_properties({UNIQUE_KEY: "t1"})):
        assert current_ids() == {"request_id": "r1", "order_id": "o1", "transaction_id": "t1"}
    assert current_ids() == {}


def test_an_id_of_any_length_does_not_fill_the_log() -> None:
    with logging_about(order_id="x" * 10_000):
        assert len(current_ids()["order_id"]) == 100


def an_app(seen: list[str]) -> Flask:
    app = Flask("shop")
    name_requests(app, uuid4)

    def see() -> str:
        seen.append(current_ids()["request_id"])
        return "seen"

    app.add_url_rule("/", "see", see)
    app.add_url_rule("/broken", "broken", lambda: 1 / 0)
    return app


def test_a_request_keeps_the_id_that_it_brings() -> None:
    seen: list[str] = []
    answer = an_app(seen).test_client().get("/", headers={"X-Request-Id": "abc-1"})
    assert (seen, answer.headers["X-Request-Id"]) == (["abc-1"], "abc-1")
    assert current_ids() == {}


@pytest.mark.parametrize("given", ["", "x" * 65, "a b", "a\tb", "é"])
def test_a_request_without_a_usable_id_gets_a_new_one(given: str) -> None:
    seen: list[str] = []
    app = an_app(seen)
    answers = [app.test_client().get("/", headers={"X-Request-Id": given.encode("latin-1").decode("latin-1")}) for _ in range(2)]
    assert [answer.headers["X-Request-Id"] for answer in answers] == seen
    assert len(set(seen)) == 2
    assert given not in seen


def test_a_request_that_fails_leaves_no_id_behind() -> None:
    answer = an_app([]).test_client().get("/broken")
    assert (answer.status_code, "X-Request-Id" in answer.headers) == (500, True)
    assert current_ids() == {}
