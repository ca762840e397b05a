"""The settings of the services in a simulation. All other settings have the defaults of production."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from credit_service.settings import WorkerSettings


@dataclass(frozen=True, slots=True)
class ShopSettings:
    """The settings of all processes of the shop."""

    namesrv_addr: str
    order_limit_cents: int = 1_000_000
    payment_deadline_s: float = 60.0
    send_timeout_ms: int = 3_000
    worker_slots: int = 2
    drain_batch: int = 256
    max_tries: int = 16
    cancels_refused: bool = True
    saves_positions: bool = False
    stock: Mapping[str, int] = field(default_factory=dict)
    """The stock of articles at the first start of an inventory service."""

    @property
    def of_worker(self) -> WorkerSettings:
        """The settings of a credit worker that a simulation uses."""
        return WorkerSettings.model_construct(
            processes=self.worker_slots,
            batch_size=self.drain_batch,
            max_tries=self.max_tries,
            cancel_refused=self.cancels_refused,
            failpoints_folder=None,
        )
