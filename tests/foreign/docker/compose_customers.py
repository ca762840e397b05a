"""Places orders with the order service of docker-compose.yml, using its key."""

from collections.abc import Callable
from typing import Final

import httpx

from demo.orders import OrderAnswer, OrderClient, make_orders, place_all
from tests.foreign.docker.compose_project import PORTS, authorization, password_of

ORDER_URL: Final = f"http://127.0.0.1:{PORTS['ORDER_PORT']}"
_NO_LIMIT: Final = 1_000_000


def order(article: str, quantity: int) -> str:
    """Places an order. Returns its id."""
    body = {"customer": "ada", "items": [{"name": article, "quantity": quantity, "price_cents": 100}]}
    answer = httpx.post(f"{ORDER_URL}/orders", json=body, headers=authorization("order-api-key"), timeout=60)
    return str(answer.raise_for_status().json()["order"]["order_id"])


def place_orders(count: int, *, after_a_third: Callable[[], None] = lambda: None) -> list[OrderAnswer]:
    """Places orders, and retries each one until there is a response.

    Calls `after_a_third` after a third of the responses.
    """
    requests = list(make_orders(count, refused_every=count + 1, limit_cents=_NO_LIMIT))
    answered: list[OrderAnswer] = []

    def on_answer(answer: OrderAnswer) -> None:
        answered.append(answer)
        if len(answered) == count // 3:
            after_a_third()

    with OrderClient(ORDER_URL, api_key=password_of("order-api-key")) as client:
        place_all(client, requests, concurrency=4, on_answer=on_answer)
    return answered


def is_ready(url: str) -> bool:
    """Returns whether the service at this address is ready."""
    try:
        return httpx.get(f"{url}/readyz", timeout=10).is_success
    except httpx.TransportError:
        return False
