from concurrent.futures import ThreadPoolExecutor
from threading import Event

import httpx
import pytest

from demo.orders import (
    MadeOrder,
    NoAnswer,
    OrderAnswer,
    OrderClient,
    PlacingOutcome,
    UnexpectedAnswer,
    busiest_second,
    make_orders,
)

REQUEST = MadeOrder("key", "ada", (("book", 2, 1_250),))
PLACED = httpx.Response(201, json={"order": {"order_id": "order-1"}})


def client_that_gets(
    *answers: httpx.Response | httpx.TransportError, api_key: str = ""
) -> tuple[OrderClient, list[httpx.Request]]:
    remaining, asked = list(answers), []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        given = remaining.pop(0)
        if isinstance(given, Exception):
            raise given
        return given

    return OrderClient("http://orders", api_key=api_key, transport=httpx.MockTransport(answer), first_wait_s=0), asked


def test_an_order_is_placed_at_the_first_answer() -> None:
    client, asked = client_that_gets(PLACED)
    answer = client.place(REQUEST)
    assert (answer.outcome, answer.order_id, answer.attempts) == (PlacingOutcome.PLACED, "order-1", 1)
    assert len(asked) == 1


def test_a_request_without_answer_is_repeated_under_the_same_key() -> None:
    client, asked = client_that_gets(
        httpx.ReadError("gone"), httpx.Response(503), httpx.Response(502), httpx.Response(202), PLACED
    )
    assert client.place(REQUEST).attempts == 5
    assert {request.headers["Idempotency-Key"] for request in asked} == {"key"}
    assert len({request.content for request in asked}) == 1


def test_the_key_that_the_order_service_asks_for_goes_with_each_order() -> None:
    client, asked = client_that_gets(PLACED, api_key="secret")
    client.place(REQUEST)
    assert [request.headers["Authorization"] for request in asked] == ["Bearer secret"]


def test_an_order_service_that_asks_for_a_key_is_one_sentence_and_is_not_asked_again() -> None:
    client, asked = client_that_gets(httpx.Response(401))
    with pytest.raises(UnexpectedAnswer, match="requires its API key; set ORDER_API_KEY_FILE to the file with it"):
        client.place(REQUEST)
    assert ["Authorization" in request.headers for request in asked] == [False]


def test_a_refused_order_is_not_repeated() -> None:
    client, asked = client_that_gets(httpx.Response(409))
    assert client.place(REQUEST).outcome is PlacingOutcome.REFUSED
    assert len(asked) == 1


def test_an_answer_that_no_repetition_changes_is_raised() -> None:
    client, _ = client_that_gets(httpx.Response(400, text="quantity"))
    with pytest.raises(UnexpectedAnswer, match="400: quantity"):
        client.place(REQUEST)


def test_a_customer_who_gets_no_answer_gives_up_with_the_reason() -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("connection refused")

    client = OrderClient("http://orders", transport=httpx.MockTransport(refuse), patience_s=0.01, first_wait_s=0.01)
    with pytest.raises(NoAnswer, match=r"the order service at http://orders did not respond for 0.01 s: connection refused"):
        client.place(REQUEST)


def test_an_order_under_way_is_given_up_with_its_client() -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        asked.set()
        raise httpx.ConnectError("connection refused")

    asked = Event()
    with ThreadPoolExecutor() as threads:
        with OrderClient("http://orders", transport=httpx.MockTransport(refuse), first_wait_s=0.01) as client:
            under_way = threads.submit(client.place, REQUEST)
            assert asked.wait(10)
        with pytest.raises(RuntimeError, match="closed"):
            under_way.result(10)


def test_one_order_in_ten_is_above_the_limit() -> None:
    orders = list(make_orders(40, refused_every=10, limit_cents=1_000_000))
    above = [
        number for number, order in enumerate(orders, 1) if sum(count * price for _, count, price in order.items) > 1_000_000
    ]
    assert above == [10, 20, 30, 40]


def test_orders_have_keys_of_their_own() -> None:
    assert len({order.idempotency_key for order in make_orders(50, refused_every=10, limit_cents=100)}) == 50


def test_the_busiest_second_counts_orders_placed_wherever_it_begins() -> None:
    def answers(outcome: PlacingOutcome, *times: float) -> list[OrderAnswer]:
        return [OrderAnswer(REQUEST, outcome, None, 1, at) for at in times]

    placed = answers(PlacingOutcome.PLACED, 0.0, 0.9, 1.1, 1.5, 1.8, 2.2)
    assert busiest_second([*placed, *answers(PlacingOutcome.REFUSED, 1.6, 1.7)]) == 4
    assert busiest_second([]) == 0
