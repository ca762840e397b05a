"""The explored test of the shop: simulates it with customers and faults, and asserts its guarantees."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from credit_service.adapters.ledger import CONSUMER as CREDITS_CONSUMER
from lab.simulation.action_kinds import ActionKind
from lab.simulation.customers.conversations import conversation
from lab.simulation.customers.customers import AnsweredRequest, CustomerAction, Customers
from lab.simulation.judges.agreement import disagreements
from lab.simulation.judges.audit import audit
from lab.simulation.judges.books import BrokerStore, read_books, read_store
from lab.simulation.judges.broker_lists import ask
from lab.simulation.judges.conversations import Conversation, judge_conversations
from lab.simulation.judges.liveness import judge_end
from lab.simulation.judges.refused_orders import innocent_but_refused
from lab.simulation.judges.safety import SafetyJudge
from lab.simulation.judges.shadow import AnswerKind
from lab.simulation.judges.violation import Promise, Violation
from lab.simulation.plans import plan_of
from lab.simulation.plans.fault_table import FAULTS
from lab.simulation.plans.fitting import shape_for
from lab.simulation.services.settings import ShopSettings
from lab.simulation.services.shop import SimulatedShop
from lab.simulation.services.shop_faults import ShopFaults
from lab.simulation.shapes import CREDITS_DATABASE, INVENTORY_DATABASE, ORDERS_DATABASE, SIMPLEST
from order_service.domain.order import Item
from pipelines.judging.classes import Finding
from pipelines.judging.cut_off import CutOff
from rocketmq_broker.testing.exploring import ExploredWorld, PromisesBroken, explore
from rocketmq_broker.testing.exploring.explore import worlds_of
from rocketmq_broker.testing.exploring.frame_watch import FrameJournal
from rocketmq_broker.testing.exploring.run import WorldRun
from rocketmq_broker.testing.exploring.search.worlds import FoundBroken, WorldEnd, WorldKind
from rocketmq_broker.testing.simulation.faults import EFFECTS
from rocketmq_broker.testing.simulation.plan import Plan, PlannedEvent
from rocketmq_broker.testing.simulation.servers import BROKER_PORT, NAME_SERVER_PORT, broker, name_server
from rocketmq_broker.testing.simulation.world import STARTS_MS, SimulatedWorld
from rocketmq_broker.testing.tapped import frames

LOOKS_S: Final = (20.0, 40.0, 120.0, 300.0, 600.0, 1200.0, 3600.0, 7200.0)
"""The pauses in seconds between checks of whether the simulation has settled. The last is after the longest redelivery."""
MAX_WAIT_S: Final = 100.0
"""The maximum time in seconds that a message waits in an inbox or an outbox after the last fault.

A failed message is retried after 60 s at most, and an unavailable broker is tried again every second. A simulation in which a
message waits longer is stopped early. If clocks were wrong, a message may wait until the time that a wrong clock showed.
"""
_MAX_ORDERS_BESIDE: Final = 24
_FIRST_BESIDE: Final = 1_000
"""The number of the first order that is placed because of an order that can never be credited."""
_BESIDE_EVERY_S: Final = 20.0
_ENOUGH_ORDERS: Final = 12
"""The minimum number of orders for which no answer at all is a violation. Fewer orders may all fall into one outage."""
_JUDGED_AS: Final = {ORDERS_DATABASE: "orders", CREDITS_DATABASE: "credits", INVENTORY_DATABASE: "stock"}
_CLOCK_FAULTS: Final = frozenset({"clock.leap", "clock.stop", "clock.rate"})
_NEEDS_SYNC: Final = frozenset({"machine.power", "disk.fail_syncs", "disk.fail_writes"})


class ShopRun(WorldRun):
    """A run of the shop with customers and faults. It records each violated guarantee."""

    def __init__(self, plan: Plan, world: SimulatedWorld) -> None:
        """Creates a run of `plan` in a new world. Raises UnreadablePlan."""
        self._shape = shape = shape_for(plan)
        self._must_sync = shape.flush_sync or any(event.what in _NEEDS_SYNC for event in plan.events)
        """True if the brokers flush messages before acknowledging them."""
        address = f"{name_server(world).machine.address}:{NAME_SERVER_PORT}"
        like = shape.as_apache or None
        self._brokers = {name: broker(world, name, address, self._broker_settings(), like) for name in shape.broker_names}
        settings = ShopSettings(
            address,
            order_limit_cents=shape.order_limit_cents,
            payment_deadline_s=shape.payment_deadline_s,
            drain_batch=shape.drain_batch,
            max_tries=shape.max_tries,
            cancels_refused=shape.cancels_refused,
            saves_positions=shape.saves_positions,
            send_timeout_ms=round(shape.send_timeout_s * 1000),
        )
        self._shop = SimulatedShop(world, settings)
        for name in shape.order_service_names:
            self._shop.order_service(name)
        for name in shape.credit_service_names:
            self._shop.credit_service(name)
        for name in shape.worker_names:
            self._shop.worker(name)
        for name in shape.inventory_names:
            self._shop.inventory_service(name)
        super().__init__(plan, world, {**EFFECTS, **ShopFaults(self._shop).effects()})
        self._customers = Customers(self._shop)
        self._conversations: list[Conversation] = []
        self._customers.observers.append(self._heard)
        self._safety = SafetyJudge(FrameJournal(world.history, world.names))
        self._broken: list[FoundBroken] = []
        self._waiting: frozenset[tuple[str, str]] = frozenset()
        """The messages in inboxes and outboxes at the last check."""
        self._watch()

    def end(self) -> None:
        """Drops the programs, and closes the databases."""
        super().end()
        self._shop.close()

    def assert_promises(self) -> None:
        """Raises PromisesBroken if a guarantee did not hold."""
        self._found(Violation(Promise.NO_TRACEBACK, text) for text in self.world.errors)
        placings = self._customers.placings
        if len(placings) >= _ENOUGH_ORDERS and not any(it.answer.kind is not AnswerKind.LOST for it in self._conversations):
            self._found([Violation(Promise.SOMEBODY_IS_SERVED, f"of {len(placings)} orders none was answered")])
        if self._broken:
            raise PromisesBroken(self._broken)

    def _broker_settings(self) -> dict[str, str]:
        shape = self._shape
        return {
            "flushDiskType": "SYNC_FLUSH" if self._must_sync else "ASYNC_FLUSH",
            "transactionTimeOut": str(round(shape.check_immunity_s * 1000)),
            "transactionCheckInterval": str(round(shape.check_interval_s * 1000)),
            "transactionCheckMax": str(shape.check_max),
            "maxTransferCountOnMessageInMemory": str(shape.pull_limit),
        }

    # observers during the run

    def _watch(self) -> None:
        world, safety = self.world, self._safety
        world.network.observe(self._seen)

        def committed(database: str, reader: Callable[[], sqlite3.Connection]) -> None:
            self._found(safety.observe_commit(_JUDGED_AS[database], reader()))

        for database in self._shop.databases.values():
            database.observers.append(committed)
        if self._must_sync:
            for name, program in self._brokers.items():
                program.on_ready.append(partial(self._recovered, name))

    def _seen(self, sender: str, receiver: str, written: bytes) -> None:
        for frame in frames(written):
            self._found(self._safety.observe(sender, receiver, frame))

    def _recovered(self, name: str) -> None:
        address = f"{self._brokers[name].machine.address}:{BROKER_PORT}"
        self._found(self._safety.after_recovery(address, self._store(name).records))

    def _heard(self, asked: AnsweredRequest) -> None:
        customer = self._customers.placings[asked.number].customer
        self._conversations.append(conversation(asked, customer))

    def _store(self, name: str) -> BrokerStore:
        disk = self._brokers[name].machine.disk
        return read_store(disk.contents(), disk.unsynced_at_power_failures)

    # the run

    def request(self, event: PlannedEvent) -> Callable[[], object] | None:
        """Returns a function that begins the action of a customer."""
        return partial(self._customers.begin, CustomerAction.of(event)) if event.what in tuple(ActionKind) else None

    def end_faults(self) -> None:
        """Ends the faults of databases and Redis, except those that never end. Any later violation is caused by the code."""
        for database in self._shop.databases.values():
            database.end_faults()
        self._shop.redis.end_all()

    async def settle(self) -> None:
        """Checks the guarantees of the end until they hold."""
        self.world.history.note("world", "fault", "all faults are over")
        await self._customers.done()
        await self._order_beside_failing()
        for seconds in LOOKS_S:
            await asyncio.sleep(seconds)
            before = self._waiting
            violations = self._judged()
            has_overdue = seconds > MAX_WAIT_S and not before.isdisjoint(self._waiting) and not self._excused()
            if not violations or has_overdue:
                break
        self._found(violations)

    async def _order_beside_failing(self) -> None:
        """Places orders while an order waits that can never be credited: its failures count only beside orders that pass."""
        for number in range(_MAX_ORDERS_BESIDE):
            if not self._shop.redis.has_unending or not self._shop.databases[CREDITS_DATABASE].has_waiting(CREDITS_CONSUMER):
                break
            items = (Item("pen", 1, 100),)
            await self._customers.act(CustomerAction(ActionKind.PLACE, "ana", _FIRST_BESIDE + number, items=items))
            await asyncio.sleep(_BESIDE_EVERY_S)

    # the checks at the end

    def _judged(self) -> list[Violation]:
        down = [name for name, program in self.world.programs.items() if not program.is_ready.is_set()]
        if down:
            return [Violation(Promise.RUNS_AGAIN, f"down at the end: {', '.join(down)}")]
        databases, shape = self._shop.databases, self._shape
        stock = databases[INVENTORY_DATABASE].reader() if shape.has_inventory else None
        books = read_books(
            databases[ORDERS_DATABASE].reader(), databases[CREDITS_DATABASE].reader(), stock,
            {name: self._store(name) for name in self._brokers},
        )  # fmt: skip
        self._waiting = books.waiting
        lists = ask(program.inspection for program in self._brokers.values())
        heard = judge_conversations(self._conversations, books.tables.orders, shape.order_limit_cents)
        groups = ["order_service", "credit_service", *(["inventory_service"] if shape.has_inventory else [])]
        liveness = judge_end(books, lists, heard.told, groups, has_inventory=shape.has_inventory)
        named = lists.names_of("credit_service") | books.parked.get("credit_service", frozenset())
        audited = audit(books, self._cut_off(), named, self._excused())
        failing = self._shop.redis.failing_orders | databases[CREDITS_DATABASE].rules.orders
        return [
            *innocent_but_refused(books, failing), *liveness.violations, *audited.violations,
            *disagreements(audited, liveness), *heard.violations,
        ]  # fmt: skip

    def _cut_off(self) -> CutOff:
        return CutOff(STARTS_MS + round(self.world.elapsed_s * 1000), grace_seconds=0, overdue_seconds=0)

    def _excused(self) -> set[Finding]:
        """Returns the findings that are accepted because clocks were wrong."""
        return {Finding.WRONG_TIME} if any(event.what in _CLOCK_FAULTS for event in self.plan.events) else set()

    def _found(self, violations: Iterable[Violation]) -> None:
        for violation in violations:
            self._broken.append(FoundBroken(violation.promise, violation.text, violation.keys, self.world.loop.elapsed_ns()))
            self.world.history.note("world", "violation", f"{violation.promise} {violation.text}", violation.keys)


SHOP: Final = WorldKind(
    draw=plan_of,
    kinds=FAULTS,
    simplest=SIMPLEST,
    lanes=("customer", "orders", "names", "broker", "credits", "redis", "inventory", "disk", ""),
)


@explore(kind=SHOP)
def every_promise_holds(world: ExploredWorld) -> None:
    """Runs the shop in a world. Its guarantees are the assertions of this test."""
    shop = ShopRun(world.plan, world.simulated)
    world.play(shop)
    shop.assert_promises()


def play(plan: Plan) -> WorldEnd:
    """Runs the plan to its end and returns the result. Raises UnreadablePlan."""
    return worlds_of(every_promise_holds).play(plan, True)
