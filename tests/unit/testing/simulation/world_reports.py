"""Creates a world's report for the tests of its page.

In the report, a COMMIT is lost, the broker is killed, and a credit is given twice.
"""

from dataclasses import replace

from rocketmq_broker.testing.simulation.page import BrokenPromise, ReportedEvent, ReportedKind, WorldReport

ORDER, TRANSACTION, MESSAGE = "order-17", "0A000002000400000001", "0A0000030000000000001F40"
LANES = (
    "customers", "orders-1", "orders-1's database", "names", "broker-a", "broker-a's disk", "credits", "redis", "worker",
    "credit database", "inventory",
)  # fmt: skip
PROMISE = "Each stored order gets its credit once."
LAST_FAULT = "the barrier row is taken out of the credit database"


def at(seconds: float, process: str, kind: str, text: str, *keys: str, to: str | None = None) -> ReportedEvent:
    return ReportedEvent(round(seconds * 1e9), process, kind, text, keys, to)


def others(first: int, begin_s: float, end_s: float, count: int) -> list[ReportedEvent]:
    """Returns events of other orders, evenly distributed between two times."""
    texts = (
        ("customers", "request", "places {}", "orders-1"), ("orders-1", "row", "{} is stored", None),
        ("broker-a's disk", "flush", "writes 412 bytes", None), ("orders-1", "answer", "{} is accepted", "customers"),
    )  # fmt: skip
    found = []
    for number in range(count):
        process, kind, text, to = texts[number % len(texts)]
        order = f"order-{first + number // len(texts)}"
        keys = () if kind == "flush" else (order,)
        found.append(at(begin_s + (end_s - begin_s) * (number + 0.5) / count, process, kind, text.format(order), *keys, to=to))
    return found


BEGIN = [
    at(0.0, "broker-a", ReportedKind.START, "broker-a starts, epoch 1"),
    at(0.1, "orders-1", ReportedKind.START, "orders-1 starts"),
    *others(1, 0.2, 3.0, 60),
    at(3.012, "customers", ReportedKind.ACTION, "ann places an order of 12.00 EUR", ORDER, to="orders-1"),
    at(3.013, "orders-1", ReportedKind.HALF, "half message", ORDER, TRANSACTION, to="broker-a"),
    at(3.019, "broker-a", ReportedKind.FLUSH, "the half message is on disk", TRANSACTION, to="broker-a's disk"),
    at(3.021, "broker-a", ReportedKind.ANSWER, "stored, queue offset 5", TRANSACTION, to="orders-1"),
    at(3.024, "orders-1", ReportedKind.ROW, "local commit: order-17 is stored", ORDER, to="orders-1's database"),
    at(3.027, "orders-1", ReportedKind.ANSWER, "order-17 is accepted", ORDER, to="customers"),
    at(3.028, "orders-1", ReportedKind.FAULT, "COMMIT of order-17 is lost", ORDER, TRANSACTION, to="broker-a"),
    *others(40, 3.1, 9.2, 40),
    at(9.3, "broker-a", ReportedKind.FAULT, "kill -9 of broker-a"),
    at(9.3, "broker-a", ReportedKind.DEATH, "broker-a dies: its memory is gone"),
    at(9.9, "orders-1", ReportedKind.ANSWER, "order-18 is refused: no broker", "order-18", to="customers"),
    at(14.3, "broker-a", ReportedKind.START, "broker-a starts again, and reads its log"),
    at(71.302, "broker-a", ReportedKind.CHECK, "check-back: is order-17 stored?", ORDER, TRANSACTION, to="orders-1"),
    at(71.304, "orders-1", ReportedKind.ROW, "order-17 is found", ORDER, to="orders-1's database"),
    at(71.305, "orders-1", ReportedKind.COMMIT, "COMMIT", ORDER, TRANSACTION, to="broker-a"),
    at(71.311, "broker-a", ReportedKind.DELIVERY, "message of order-17, first time", TRANSACTION, MESSAGE, to="credits"),
    at(71.316, "credits", ReportedKind.SEND, "task for order-17", MESSAGE, ORDER, to="redis"),
    at(71.320, "redis", ReportedKind.DELIVERY, "task for order-17", MESSAGE, to="worker"),
    at(71.331, "worker", ReportedKind.ROW, "credit 1 of order-17: 12 points", ORDER, to="credit database"),
    at(71.340, "credits", ReportedKind.FAULT, "the answer “consumed” is lost", MESSAGE, to="broker-a"),
    *others(60, 71.5, 80.0, 32),
]  # fmt: skip
END = [
    at(81.350, "broker-a", ReportedKind.DELIVERY, "message of order-17, second time", TRANSACTION, MESSAGE, to="credits"),
    at(81.355, "credits", ReportedKind.SEND, "task for order-17", MESSAGE, ORDER, to="redis"),
    at(81.360, "redis", ReportedKind.DELIVERY, "task for order-17", MESSAGE, to="worker"),
]
LATER = others(80, 82.0, 95.0, 20)


def failed_world() -> WorldReport:
    """Returns the report of a world without the barrier."""
    return WorldReport(
        seed=4711,
        title="order-17 is credited twice",
        lanes=LANES,
        happenings=(
            *BEGIN,
            at(75.0, "credit database", ReportedKind.FAULT, LAST_FAULT),
            *END,
            at(81.372, "worker", ReportedKind.ROW, "credit 2 of order-17: 12 points", ORDER, to="credit database"),
            at(81.380, "", ReportedKind.VIOLATION, "balance", ORDER),
            *LATER,
        ),
        violations=(
            BrokenPromise("A balance is the sum of the orders.", "ann has 24 points for 12", 95_000_000_000, ("ann",)),
            BrokenPromise(PROMISE, "order-17 has two credits", 81_380_000_000, (ORDER,)),
        ),
        digest="5f1e0c6a9b7d43e28f0a6c1d2e3b4a59",
        plan={
            "seed": 4711, "shape": {"brokers": 1, "orders": 40},
            "faults": [{"kind": "lose_commit", "at_s": 3.0}, {"kind": "kill", "target": "broker-a", "at_s": 9.3, "for_s": 5}],
        },
        how_to_repeat="make simulate SEED=4711",
    )  # fmt: skip


def world_without_the_last_fault() -> WorldReport:
    """Returns the report of the same world with the barrier, in which the worker finds the barrier row."""
    refused = at(81.371, "worker", ReportedKind.ROW, "barrier row exists: no second credit", ORDER, to="credit database")
    return replace(failed_world(), happenings=(*BEGIN, *END, refused, *LATER), violations=(), digest="00")
