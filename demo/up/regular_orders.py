"""Places orders at intervals, so that the screens show activity."""

import itertools
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from demo.asking import ask
from demo.orders import make_orders
from demo.system import System
from demo.up.keeper import Keeper


@contextmanager
def regular_orders(system: System, keeper: Keeper, every_s: float) -> Iterator[None]:
    """Places orders at intervals in a thread during the block. Places no order while the service is not ready."""
    leave = threading.Event()

    def place_on() -> None:
        for seed in itertools.count(random.randrange(1_000_000)):
            if leave.wait(every_s):
                return
            if keeper.is_ready(system.order_service):
                _place(f"{system.order_url}/orders", seed)

    threading.Thread(target=place_on, name="regular orders", daemon=True).start()
    try:
        yield
    finally:
        leave.set()


def _place(url: str, seed: int) -> None:
    (request,) = make_orders(1, refused_every=10, limit_cents=1_000_000, seed=seed)
    try:
        ask("POST", url, request.as_json(), timeout_s=15)
    except httpx.TransportError:
        return
