"""Tests of the race: each approach's losses, equal results for equal seeds, and a reader's own approach."""

import asyncio
import dataclasses
import json
import re
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from rocketmq_broker.client import Producer
from tutorials.race import __main__ as command_line
from tutorials.race import cell
from tutorials.race.brokers.apache import missing_for_apache
from tutorials.race.brokers.own import OwnBroker
from tutorials.race.entries import NoSuchEntry, cells, ways_with
from tutorials.race.faults import Fault, FaultPlan
from tutorials.race.order import TOPIC, Order
from tutorials.race.results.figures import Figures, percentile
from tutorials.race.results.picture import picture
from tutorials.race.results.record import Record, read_record
from tutorials.race.results.table import tables_of_cells, tables_of_costs, tables_of_faults, titles
from tutorials.race.running import play_cell
from tutorials.race.ways import WAYS, WAYS_ON_APACHE

DOCS = Path(__file__).parents[3] / "docs"
ORDERS = 15
SEED = 14
SLOW_S = (20.0, 140.0)
FLAWED = [
    ("send-then-commit", "dies-before-commit"),
    ("commit-then-send", "dies-after-commit"),
    ("send-inside", "database-refuses"),
    ("call-in-line", "dies-before-commit"),
    ("call-in-line", "database-refuses"),
    ("call-in-line", "answer-lost"),
    ("celery-delay", "dies-after-commit"),
    ("celery-delay", "redis-emptied"),
    ("state-in-memory", "dies-before-commit"),
    ("without-barrier", "slow-commit"),
]
SOUND = ["outbox-polled", "outbox-notified", "ask-before-credit", "with-barrier"]
HARD_FOR_AN_OUTBOX = [Fault.DIES_AFTER_COMMIT, Fault.BROKER_DOWN, Fault.RESTART_OF_ALL]
SOUND_CELLS: list[tuple[str, Fault]] = [("with-barrier", fault) for fault in Fault if fault is not Fault.NONE]
SOUND_CELLS += [(way, fault) for way in ("outbox-polled", "outbox-notified") for fault in HARD_FOR_AN_OUTBOX]
SOUND_CELLS += [("ask-before-credit", fault) for fault in Fault if fault not in (Fault.NONE, Fault.CONSUMER_DIES)]


@pytest.mark.parametrize(("way", "fault"), FLAWED)
def test_a_flawed_way_goes_wrong_where_its_chapter_says(way: str, fault: str) -> None:
    assert play_cell(way, fault, ORDERS, SEED).wrong > 0


@pytest.mark.parametrize(("way", "fault"), SOUND_CELLS)
def test_a_sound_way_never_goes_wrong(way: str, fault: Fault) -> None:
    figures = play_cell(way, fault.value, ORDERS, SEED)
    assert (figures.missing, figures.phantom) == (0, 0)
    assert min(figures.stored, figures.struck) > 0


def test_without_a_fault_no_way_goes_wrong_and_every_order_is_stored() -> None:
    played = [play_cell(way.name, "none", 2, 1) for way in WAYS]
    assert [(one.way, one.stored, one.wrong, one.doubled) for one in played] == [(way.name, 2, 0, 0) for way in WAYS]


def test_one_seed_gives_the_same_figures_and_another_does_not() -> None:
    first, again, other = (play_cell("with-barrier", "restart-of-all", 8, seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_the_outbox_takes_orders_while_the_broker_is_down_and_a_transaction_does_not() -> None:
    outbox, transaction = (play_cell(way, "broker-down", ORDERS, SEED) for way in ("outbox-polled", "with-barrier"))
    assert outbox.taken_while_down == outbox.asked_while_down > 0
    assert transaction.taken_while_down == 0 < transaction.asked_while_down


def test_an_emptied_redis_hurts_only_who_keeps_tasks_in_it() -> None:
    played = [play_cell(way.name, "redis-emptied", 6, SEED) for way in WAYS]
    assert {one.way for one in played if one.wrong} == {"celery-delay"}
    assert len({one.struck for one in played}) == 1


@pytest.mark.parametrize("way", SOUND)
def test_no_sound_way_saves_its_consumer_the_unique_key(way: str) -> None:
    figures = play_cell(way, "consumer-dies", ORDERS, SEED)
    assert (figures.stored, figures.wrong) == (ORDERS, 0)
    assert figures.doubled > 0


def test_a_consumer_that_asks_back_credits_at_the_second_try_and_never_without_an_order() -> None:
    calm, refused = (play_cell("ask-before-credit", fault, ORDERS, SEED) for fault in ("none", "database-refuses"))
    assert 10_000 <= calm.p50_ms <= calm.p99_ms < 10_010  # the message is faster than the commit, and comes again after 10 s
    assert (refused.phantom, refused.missing) == (0, 0)
    assert refused.stored < ORDERS
    assert refused.extra_records > calm.extra_records  # a message without an order comes again and again


def test_the_plain_send_below_it_has_phantoms_in_each_cell_where_asking_back_has_none() -> None:
    faults = ("dies-before-commit", "database-refuses", "answer-lost")
    assert all(play_cell("send-then-commit", fault, ORDERS, SEED).phantom for fault in faults)


def test_a_call_in_line_refuses_orders_while_the_credit_process_is_away_and_needs_no_broker() -> None:
    dead, down = (play_cell("call-in-line", fault, ORDERS, SEED) for fault in ("consumer-dies", "broker-down"))
    assert dead.struck > 0
    assert (dead.stored, dead.phantom) == (ORDERS - dead.struck, dead.struck)  # credited, then no answer: the order rolls back
    assert down.taken_while_down == down.asked_while_down > 0


def test_a_plan_says_the_same_to_every_way() -> None:
    plans = [FaultPlan(7, Fault.DIES_AFTER_COMMIT, SLOW_S) for _ in range(2)]
    points = [f"order-{number}" for number in range(100)]
    struck = [[point for point in points if plan.strikes(Fault.DIES_AFTER_COMMIT, point)] for plan in plans]
    assert struck[0] == struck[1]
    assert 5 < len(struck[0]) < 40


def test_a_plan_that_is_over_strikes_no_more() -> None:
    plan = FaultPlan(1, Fault.CONSUMER_DIES, SLOW_S)
    plan.end()
    assert not any(plan.strikes(Fault.CONSUMER_DIES, str(number)) for number in range(100))


HOPE = '''
from rocketmq_broker.client import Producer
from tutorials.race.order import Order
from tutorials.race.way import Way


class Hope(Way):
    """Stores, and tells nobody."""

    name = "hope"
    title = "commit, and hope"

    async def start(self) -> None:
        pass

    async def place(self, order: Order) -> None:
        async with self.database.writing(order) as writing:
            writing.store(order)
'''


@pytest.fixture
def hope(tmp_path: Path) -> Path:
    file = tmp_path / "hope.py"
    file.write_text(HOPE)
    return file


def test_a_further_way_races_from_a_file_of_its_own(hope: Path) -> None:
    figures = play_cell("hope", "none", 5, 1, hope)
    assert (figures.stored, figures.missing) == (5, 5)


def test_the_command_prints_a_cell_and_writes_its_figures(hope: Path, tmp_path: Path) -> None:
    output = tmp_path / "figures.json"
    arguments = ["--cell", "hope/none", "--orders", "3", "--add", str(hope), "--output", str(output)]
    ended = CliRunner().invoke(command_line.app, arguments)
    assert (ended.exit_code, "hope" in ended.output) == (0, True)
    record = json.loads(output.read_text())
    assert [(one["way"], one["missing"]) for one in record["cells"]] == [("hope", 3)]


@pytest.mark.parametrize(
    ("text", "words"),
    [("hop/none", "unknown approach 'hop'; choose from send-then-commit"), ("/rain", "unknown fault 'rain'; choose from none")],
)
def test_a_cell_that_does_not_exist_is_an_error_that_says_which_there_are(text: str, words: str) -> None:
    with pytest.raises(NoSuchEntry, match=words):
        cells(WAYS, [text])


def test_a_file_without_a_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("")
    with pytest.raises(NoSuchEntry, match=r"empty\.py has no subclass of Way"):
        ways_with(tmp_path / "empty.py")


def test_without_a_wish_all_cells_are_played() -> None:
    assert len(cells(WAYS, [])) == len(WAYS) * len(Fault)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--cell", "with-barrier-on-apache/none"], "real time: set the number of orders, such as --apache 50"),
        (["--apache", "50"], "java is not on PATH"),
    ],
)
def test_apaches_broker_races_only_where_it_is_asked_for_and_can_run(
    arguments: list[str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    ended = CliRunner().invoke(command_line.app, arguments, env={"COLUMNS": "300"})
    assert ended.exit_code == 2
    assert words in re.sub(r"[│\s]+", " ", ended.output)


def test_without_maven_the_race_says_which_jars_it_misses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JARS", str(tmp_path / "jars"))
    assert f"jars are not in {tmp_path}/jars/4.9.7, and mvn is not on PATH" in (missing_for_apache("4.9.7") or "")
    (tmp_path / "jars" / "4.9.7").mkdir(parents=True)
    assert missing_for_apache("4.9.7") is None


def made_up(way: str, fault: str, missing: int) -> Figures:
    numbers = {field.name: 0 for field in dataclasses.fields(Figures)}
    return Figures(**{**numbers, "way": way, "fault": fault, "orders": 100, "missing": missing})  # type: ignore[arg-type]


def test_the_picture_shows_each_way_and_each_number() -> None:
    figures = [made_up(way.name, fault.value, 7 * (fault is Fault.COMMIT_LOST)) for way in WAYS for fault in Fault]
    drawn = picture(WAYS, list(Fault), figures, orders=100, seed=1)
    assert [drawn.count(f">{way.title}<") for way in WAYS] == [1] * len(WAYS)
    assert drawn.count(">-7<") == len(WAYS)


def test_the_picture_is_hardly_wider_than_a_phone() -> None:
    figures = [made_up(way.name, fault.value, 0) for way in WAYS for fault in Fault]
    width = re.search(r"viewBox='0 0 (\d+) ", picture(WAYS, list(Fault), figures, orders=100, seed=1))
    assert width is not None
    assert int(width[1]) < 420


def test_the_picture_in_the_docs_is_drawn_from_the_figures_beside_it() -> None:
    record = read_record((DOCS / "race.json").read_text())
    played = {one.way for one in record.figures}
    ways = [way for way in (*WAYS, *WAYS_ON_APACHE) if way.name in played]
    drawn = picture(ways, list(Fault), record.figures, orders=record.orders, seed=record.seed)
    assert (DOCS / "race.svg").read_text() == drawn, 'draw it again: make race RACE="--renew-docs"'


def test_figures_of_apaches_broker_stay_in_the_file_until_new_ones_come(tmp_path: Path) -> None:
    output = tmp_path / "figures.json"
    earlier = [made_up(way.name, fault.value, 0) for way in WAYS_ON_APACHE for fault in Fault]
    output.write_text(Record(50, 1, earlier).written())
    assert command_line._with_kept([], output) == ([*WAYS_ON_APACHE], earlier)
    assert command_line._with_kept(WAYS_ON_APACHE, output) == ([*WAYS_ON_APACHE], [])


@pytest.fixture
def others(tmp_path: Path) -> Path:
    output = tmp_path / "figures.json"
    figures = [made_up(way.name, fault.value, 7) for way in WAYS if way.name != "call-in-line" for fault in Fault]
    output.write_text(Record(2, 1, figures).written())
    return output


def test_one_way_is_played_and_the_figures_of_all_others_stay(others: Path) -> None:
    arguments = ["--way", "call-in-line", "--orders", "2", "--processes", "1", "--output", str(others)]
    ended = CliRunner().invoke(command_line.app, [*arguments, "--draw", str(others.with_suffix(".svg"))])
    assert ended.exit_code == 0
    record = read_record(others.read_text())
    assert list(dict.fromkeys(one.way for one in record.figures)) == [way.name for way in WAYS]
    assert list(record.kept_ways) == [way.name for way in WAYS if way.name != "call-in-line"]
    assert {one.missing for one in record.figures if one.way == "call-in-line"} == {0}
    assert {one.missing for one in record.figures if one.way != "call-in-line"} == {7}
    assert others.with_suffix(".svg").read_text().count(">-7<") == len(Fault) * (len(WAYS) - 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--way", "call-in-line", "--orders", "3"], "has 2 orders in each cell and seed 1: use the same --orders and --seed"),
        (
            ["--way", "call-in-line", "--orders", "2", "--seed", "5"],
            "has 2 orders in each cell and seed 1: use the same --orders and --seed",
        ),
        (["--way", "send-inside", "--orders", "2"], "has no complete figures of call-in-line: add these ways with --way"),
        (["--way", "call-in-line", "--cell", "/none"], "--cell plays single cells: omit it, or omit --way and --draw"),
        (["--way", "call-in-line/none", "--orders", "2"], "unknown approach 'call-in-line/none'"),
    ],
)
def test_figures_that_do_not_fit_together_are_not_mixed(arguments: list[str], words: str, others: Path) -> None:
    ended = CliRunner().invoke(command_line.app, [*arguments, "--output", str(others)], env={"COLUMNS": "1000"})
    assert ended.exit_code == 2
    assert words in re.sub(r"[│\s]+", " ", ended.output)


def test_a_single_way_needs_the_figures_of_the_others(tmp_path: Path) -> None:
    arguments = ["--way", "call-in-line", "--output", str(tmp_path / "none.json")]
    ended = CliRunner().invoke(command_line.app, arguments, env={"COLUMNS": "300"})
    assert ended.exit_code == 2
    assert "--way needs a JSON file with the figures of the other ways" in ended.output


def test_a_row_says_its_number_of_orders_where_others_had_more() -> None:
    figures = [made_up(way.name, "none", 0) for way in WAYS]
    figures.append(dataclasses.replace(made_up(WAYS_ON_APACHE[0].name, "none", 0), orders=50))
    called = titles((*WAYS, *WAYS_ON_APACHE), figures)
    assert [title for title in called.values() if "orders" in title] == ["the same, on Apache RocketMQ 4.9.7: 50 orders"]


def test_a_percentile_is_one_of_the_values() -> None:
    assert [percentile([1, 2, 3, 4], share) for share in (0, 0.5, 0.99)] == [1, 3, 4]
    assert percentile([], 0.5) == 0


async def test_a_cell_comes_to_its_end_only_when_nobody_sends_any_more(tmp_path: Path) -> None:
    async with OwnBroker(SEED, tmp_path) as broker:
        producer = Producer("relay", namesrv_addr=broker.namesrv_addr)
        await producer.start()
        await producer.create_topic(TOPIC)

        async def relay() -> None:
            for number in range(3):
                await asyncio.sleep(4 * 60)
                await producer.send(Order(number, 100).message())

        relaying = asyncio.create_task(relay())
        await broker.come_to_rest()
        await producer.shutdown()
        assert relaying.done()
        assert broker.count_records() == 3


def test_the_broker_gives_no_transaction_up_while_its_producer_is_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell, "RESTART_TAKES_S", 20 * 60.0)  # longer than 15 check-backs take to come round
    figures = play_cell("with-barrier", "dies-after-commit", ORDERS, SEED)
    assert figures.struck > 0
    assert figures.wrong == 0


@pytest.mark.parametrize("width", [80, 110, 160])
def test_its_tables_fit_the_terminal_and_have_every_figure(width: int) -> None:
    record = read_record((DOCS / "race.json").read_text())
    ways = [*WAYS, *WAYS_ON_APACHE]
    tables = [
        *tables_of_faults(ways, list(Fault), record.figures, width),
        *tables_of_costs(ways, record.figures, width),
        *tables_of_cells(record.figures, width),
    ]
    console = Console(width=1000)
    with console.capture() as printed:
        console.print(*tables, width=width)
    assert not [line for line in printed.get().splitlines() if len(line.rstrip()) > width]
    assert max(console.measure(table).minimum for table in tables) <= width
    columns = [str(column.header) for table in tables for column in table.columns]
    assert {fault.heading for fault in Fault} | {"extra records", "p99"} <= set(columns)
