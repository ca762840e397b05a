"""The settings of the services in a simulation. All other settings have the defaults of production."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ShopSettings:
    """The settings of all processes of the shop."""

    namesrv_addr: str
    order_limit_cents: int = 1_000_000
    payment_deadline_s: float = 60.0
    send_timeout_ms: int = 3_000
    consumer_threads: int = 8
    batch_size: int = 32
    task_timeout_s: float = 10.0
    max_reconsume_times: int = 16
    cancels_refused: bool = True
    credits_by_celery: bool = True
    worker_slots: int = 2
    stock: Mapping[str, int] = field(default_factory=dict)
    """The stock of articles at the first start of an inventory service."""
