"""The explorer's command line for the shop: `python -m lab.simulation --help`."""

if __name__ == "__main__":
    from rocketmq_broker.stop_signals import exit_at_once_on_ctrl_c

    exit_at_once_on_ctrl_c()

import sys
from pathlib import Path

from rocketmq_broker.stop_signals import until_interrupted
from rocketmq_broker.testing.exploring.__main__ import app

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "credit_service", "inventory_service", "order_messages", "order_service", "pipelines", "service_runtime", "lab/simulation",
)  # fmt: skip
"""The folders of the simulated code, besides the broker's."""
ARGUMENTS = [
    "lab.simulation.world:every_promise_holds",
    *(f"--code={ROOT / package}" for package in (*PACKAGES, "requirements.lock")),
]  # fmt: skip

if __name__ == "__main__":
    with until_interrupted():
        app([*ARGUMENTS, *sys.argv[1:]])
