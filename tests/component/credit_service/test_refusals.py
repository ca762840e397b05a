"""A rule of the credit database that refuses everything holds orders; one that refuses some sends those to the dead letters."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest
from sqlalchemy import Engine

from credit_service.adapters.celery_crediting import CeleryCrediting
from credit_service.adapters.ledger import Ledger
from credit_service.domain.credit import Credit, CreditOutcome
from credit_service.service_layer.crediting import Credited, Later
from credit_service.service_layer.fair_crediting import FairCrediting
from credit_service.service_layer.patient_crediting import PatientCrediting
from order_messages.states import EntryKind
from rocketmq_broker.client import ConsumeContext
from rocketmq_broker.world import World
from service_runtime.database.engine import create_database_engine
from service_runtime.failing.holds import ASIDE_S, HoldCause, Holds
from service_runtime.failing.refusals import SETTLED_S, Doubts, Elsewhere
from tests.component.credit_service.conftest import a_context, a_credit, a_reversal
from tests.database_rules import Rule, rules, service_url
from tests.unit.credit_service.credit_side import CreditSide

CREDITED, IMPOSSIBLE = CreditOutcome.CREDITED, CreditOutcome.IMPOSSIBLE
RULED_S = 150.0
LARGEST = 100
SMALL, LARGE = LARGEST * 100, (LARGEST + 1) * 100
TOO_NARROW = "ALTER TABLE credits ALTER COLUMN order_id TYPE {0} USING left(order_id, 36)"

WITHOUT_PAUSES = World(sleep=lambda seconds: None)


def rule_of(engine: Engine, name: str) -> Rule:
    known = rules(engine.dialect.name, "credits", "points", LARGEST, too_narrow=TOO_NARROW)
    if name not in known:
        pytest.skip(f"{engine.dialect.name} has no such rule: {name}")
    return known[name]


NAMES = sorted({name for dialect in ("sqlite", "postgresql") for name in rules(dialect, "t", "c", 0, too_narrow="")})


@dataclass(slots=True)
class Shop:
    """Consumers of one process, whose time passes when somebody waits; `meanwhile` is done at each wait."""

    side: CreditSide
    threads: int = 4
    elsewhere: Elsewhere | None = None
    meanwhile: Callable[[], None] = lambda: None
    holds: Holds = field(init=False)
    fair: FairCrediting = field(init=False)

    def __post_init__(self) -> None:
        self.holds = Holds(now_s=self.side.clock)
        crediting = CeleryCrediting(self.side, World(steady_ns=lambda: int(self.side.clock() * 1e9)), timeout_s=10)
        patient = PatientCrediting(crediting, self.holds, threads=self.threads, wait=self._wait)
        self.fair = FairCrediting(patient, Doubts(self.holds, self.threads, self.side.clock, self.elsewhere))

    def credit(self, credits: Sequence[Credit]) -> list[Credited]:
        return self.fair.credit(credits, a_context())

    def _wait(self, context: ConsumeContext, seconds: float) -> None:
        self.side.clock.wait(context, seconds)
        self.meanwhile()


@pytest.fixture
def service_engine(database_url: str, engine: Engine) -> Iterator[Engine]:
    """As the service's own account."""
    opened = create_database_engine(service_url(database_url))
    yield opened
    opened.dispose()


@pytest.fixture
def shop(service_engine: Engine) -> Shop:
    return Shop(CreditSide(Ledger(service_engine, WITHOUT_PAUSES)))


def orders(count: int, first: int = 0, amount_cents: int = SMALL) -> list[Credit]:
    return [a_credit(f"order-{number}", amount_cents=amount_cents) for number in range(first, first + count)]


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("some")])
def test_a_rule_that_refuses_every_row_costs_time_and_nothing_else(shop: Shop, engine: Engine, name: str) -> None:
    rule = rule_of(engine, name)
    rule.is_set_up(engine)
    seen: set[HoldCause] = set()

    def mend_in_the_end() -> None:
        holding = shop.holds.state()
        if holding is not None:
            seen.add(holding.cause)
            assert (holding.orders, holding.is_outage) == (32, True)
        if shop.side.clock() > RULED_S:
            shop.meanwhile = lambda: None
            rule.is_mended(engine)

    shop.meanwhile = mend_in_the_end
    assert shop.credit(orders(32)) == [CREDITED] * 32
    assert RULED_S < shop.side.clock() < RULED_S + 30
    assert seen <= {HoldCause.REFUSAL, HoldCause.OUTAGE}
    # The database is asked sparsely: one task each 10 s, and not one for each order.
    assert shop.side.sent < RULED_S / 10 + 10
    assert shop.holds.state() is None


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("some")])
def test_a_rule_that_refuses_some_is_those_orders_fault_once_others_pass(shop: Shop, engine: Engine, name: str) -> None:
    rule_of(engine, name).is_set_up(engine)
    bad = [a_credit("bad-1", amount_cents=LARGE), a_credit("bad-2", amount_cents=LARGE)]
    waits = 0

    def another_passes() -> None:
        nonlocal waits
        waits += 1
        if waits == 5:
            shop.holds.has_passed(EntryKind.CREDIT, shop.holds.moment())

    shop.meanwhile = another_passes
    good = orders(6)
    assert shop.credit([*good[:3], bad[0], *good[3:], bad[1]]) == [*[CREDITED] * 3, IMPOSSIBLE, *[CREDITED] * 3, IMPOSSIBLE]
    assert waits == 5


def test_orders_of_the_same_task_prove_nothing_since_the_rule_may_have_come_between(shop: Shop, engine: Engine) -> None:
    rule = rule_of(engine, "some: raising trigger")
    rule.is_set_up(engine)

    def mend_later() -> None:
        if shop.side.clock() > RULED_S and shop.meanwhile is mend_later:
            shop.meanwhile = lambda: None
            rule.is_mended(engine)

    shop.meanwhile = mend_later
    assert shop.credit([*orders(3), a_credit("large", amount_cents=LARGE)]) == [CREDITED] * 4
    assert shop.side.clock() > RULED_S


@pytest.mark.parametrize("passing", [a_reversal("other"), a_credit("order-0", amount_cents=SMALL)])
def test_neither_another_kind_of_write_nor_a_redelivery_shows_that_orders_pass(sqlite_engine: Engine, passing: Credit) -> None:
    shop = Shop(CreditSide(Ledger(sqlite_engine, WITHOUT_PAUSES)))
    assert shop.credit(orders(1)) == [CREDITED]
    rule = rule_of(sqlite_engine, "some: raising trigger")
    rule.is_set_up(sqlite_engine)
    other = Shop(shop.side)
    other.fair = FairCrediting(PatientCrediting(shop.fair.patient.crediting, shop.holds, threads=4), shop.fair.doubts)

    def pass_another_then_mend() -> None:
        if shop.side.clock() > RULED_S:
            shop.meanwhile = lambda: None
            rule.is_mended(sqlite_engine)
        else:
            assert set(other.credit([passing])) <= {CREDITED, CreditOutcome.ALREADY_CREDITED}

    shop.meanwhile = pass_another_then_mend
    assert shop.credit([a_credit("large", amount_cents=LARGE)]) == [CREDITED]
    assert shop.side.clock() > RULED_S


def test_a_bad_order_alone_is_held_and_seen_until_another_passes_and_is_its_own_fault_then(sqlite_engine: Engine) -> None:
    shop = Shop(CreditSide(Ledger(sqlite_engine, WITHOUT_PAUSES)))
    rule_of(sqlite_engine, "some: raising trigger").is_set_up(sqlite_engine)

    def another_much_later() -> None:
        holding = shop.holds.state()
        assert holding is None or (holding.orders, holding.cause, holding.is_outage) == (1, HoldCause.REFUSAL, False)
        if shop.side.clock() > 4 * RULED_S:
            shop.meanwhile = lambda: None
            assert shop.credit(orders(1)) == [CREDITED]

    shop.meanwhile = another_much_later
    assert shop.credit([a_credit("bad", amount_cents=LARGE)]) == [IMPOSSIBLE]
    assert shop.side.clock() > 4 * RULED_S


@pytest.mark.parametrize("writes", ["order", "refusal", "reversal"])
def test_orders_that_other_processes_write_show_that_the_database_takes_them(engine: Engine, writes: str) -> None:
    """A restart or a second service: the ledger itself is the witness. What a refusal writes, or another kind, is none."""
    ledger = Ledger(engine, WITHOUT_PAUSES)
    shop = Shop(CreditSide(ledger), elsewhere=ledger)
    rule = rule_of(engine, "some: raising trigger")
    rule.is_set_up(engine)
    elsewhere = {
        "order": lambda number: ledger.credit([a_credit(f"there-{number}", amount_cents=SMALL)]),
        "refusal": lambda number: ledger.annul(a_credit(f"there-{number}")),
        "reversal": lambda number: ledger.credit([a_reversal(f"there-{number}", amount_cents=SMALL)]),
    }[writes]
    waits = 0

    def write_there() -> None:
        nonlocal waits
        waits += 1
        elsewhere(waits)
        if shop.side.clock() > RULED_S:
            shop.meanwhile = lambda: None
            rule.is_mended(engine)

    shop.meanwhile = write_there
    bad = a_credit("bad", amount_cents=LARGE)
    if writes == "order":
        assert shop.credit([bad]) == [IMPOSSIBLE]
        assert SETTLED_S <= shop.side.clock() < SETTLED_S + 60
    else:
        assert shop.credit([bad]) == [CREDITED]
        assert shop.side.clock() > RULED_S


def test_a_row_that_was_under_way_when_the_order_was_refused_is_no_witness(sqlite_engine: Engine) -> None:
    """A grant that is taken away does not wait for transactions that began before."""
    ledger = Ledger(sqlite_engine, WITHOUT_PAUSES)
    shop = Shop(CreditSide(ledger), elsewhere=ledger)
    rule = rule_of(sqlite_engine, "some: raising trigger")
    rule.is_set_up(sqlite_engine)
    late = iter(range(1_000_000))

    def end_what_was_under_way() -> None:
        if shop.side.clock() < SETTLED_S / 2:
            ledger.credit([a_credit(f"late-{next(late)}", amount_cents=SMALL)])
        if shop.side.clock() > RULED_S:
            shop.meanwhile = lambda: None
            rule.is_mended(sqlite_engine)

    shop.meanwhile = end_what_was_under_way
    assert shop.credit([a_credit("refused", amount_cents=LARGE)]) == [CREDITED]


def test_refused_orders_that_occupy_all_threads_give_way_and_spend_no_redelivery(sqlite_engine: Engine) -> None:
    """The order that could pass is behind them: it gets a thread, and shows that they are at fault when they come again."""
    shop = Shop(CreditSide(Ledger(sqlite_engine, WITHOUT_PAUSES)), threads=3)
    rule_of(sqlite_engine, "some: raising trigger").is_set_up(sqlite_engine)
    bad = [[a_credit(f"bad-{number}", amount_cents=LARGE)] for number in range(3)]
    with ThreadPoolExecutor(3) as threads:
        first = list(threads.map(shop.credit, [*bad, orders(1)]))
    assert first[3] == [CREDITED]
    assert [Later.GAVE_WAY] in first[:3]
    assert {outcome for (outcome,) in first[:3]} <= {Later.GAVE_WAY, IMPOSSIBLE}
    again = [batch for batch, outcome in zip(bad, first, strict=False) if outcome == [Later.GAVE_WAY]]
    with ThreadPoolExecutor(3) as threads:
        passing = threads.submit(lambda: [shop.credit(orders(1, number)) for number in range(1, 200)])
        assert list(threads.map(shop.credit, again[:2])) == [[IMPOSSIBLE]] * len(again[:2])
        passing.result()


def test_while_nothing_passes_orders_give_way_the_more_rarely_and_count_as_held(sqlite_engine: Engine) -> None:
    shop = Shop(CreditSide(Ledger(sqlite_engine, WITHOUT_PAUSES)), threads=1)
    rule_of(sqlite_engine, "raising trigger").is_set_up(sqlite_engine)
    took: list[float] = []
    for _ in range(10):
        began_s = shop.side.clock()
        assert shop.credit(orders(8)) == [Later.GAVE_WAY] * 8
        took.append(shop.side.clock() - began_s)
        holding = shop.holds.state()
        assert holding is not None
        assert (holding.orders, holding.cause) == (8, HoldCause.REFUSAL)
        shop.side.clock.advance(ASIDE_S + 1)
        assert shop.holds.state() is None
    assert took == sorted(took)
    assert (took[0] < 30, took[-1] > 100) == (True, True)
