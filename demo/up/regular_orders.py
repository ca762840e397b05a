"""Places orders at intervals, so that the screens show activity."""

import itertools
import random
import threading
from types import TracebackType
from typing import Self

import httpx

from demo.asking import ask
from demo.orders import make_orders
from demo.system import System
from demo.up.keeper import Keeper


class RegularOrders:
    """Places orders at intervals in a thread during the block. Places no order while the service is not ready."""

    def __init__(self, system: System, keeper: Keeper, every_s: float) -> None:
        self._url = f"{system.order_url}/orders"
        self._process = system.order_service
        self._keeper = keeper
        self._every_s = every_s
        self._leave = threading.Event()
        self._thread = threading.Thread(target=self._place_on, name="regular orders", daemon=True)

    def __enter__(self) -> Self:
        """Starts placing orders."""
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stops placing orders."""
        self._leave.set()

    def _place_on(self) -> None:
        for seed in itertools.count(random.randrange(1_000_000)):
            if self._leave.wait(self._every_s):
                return
            if self._keeper.is_ready(self._process):
                self._place(seed)

    def _place(self, seed: int) -> None:
        (request,) = make_orders(1, refused_every=10, limit_cents=1_000_000, seed=seed)
        try:
            ask("POST", self._url, request.as_json(), timeout_s=15)
        except httpx.TransportError:
            return
