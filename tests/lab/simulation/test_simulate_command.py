"""Tests `make simulate`: it plays many seeds in several processes, stops and continues, and shrinks a failing seed."""

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from rich.console import Console
from typer.testing import CliRunner

from lab.simulation.__main__ import ARGUMENTS
from rocketmq_broker.testing.exploring.__main__ import app
from rocketmq_broker.testing.exploring.search.command import SearchCommand
from rocketmq_broker.testing.exploring.search.worlds import WorldEnd
from rocketmq_broker.testing.simulation.plan import Plan, PlannedEvent, read_plan
from tests.lab.simulation import small_worlds

ROOT = Path(__file__).parents[3]


class Ran:
    """A command for small worlds, and its output."""

    def __init__(self, folder: Path, play: Callable[[Plan], WorldEnd], version: str = "v1") -> None:
        self.folder = folder
        self._printed = io.StringIO()
        console = Console(file=self._printed, width=200)
        self.command = SearchCommand(small_worlds.worlds_of(play), console, folder, version, "simulate", processes=2)

    @property
    def printed(self) -> str:
        return self._printed.getvalue()

    @property
    def lines_kept(self) -> list[str]:
        return (self.folder / "simulation" / "v1.jsonl").read_text().splitlines()


def test_worlds_that_keep_their_promises_end_with_0_and_the_table_of_faults(tmp_path: Path) -> None:
    ran = Ran(tmp_path, small_worlds.play)
    assert ran.command.search(range(1, 101)) == 0
    assert "kept for this code: 100 worlds" in ran.printed
    assert "Every promise held" in ran.printed
    assert all(kind in ran.printed for kind in small_worlds.KINDS)


def test_the_next_run_plays_only_the_seeds_that_are_new(tmp_path: Path) -> None:
    Ran(tmp_path, small_worlds.play).command.search(range(1, 61))
    again = Ran(tmp_path, small_worlds.play)
    assert again.command.search(range(1, 101)) == 0
    assert "40 worlds passed" in again.printed
    assert "kept for this code: 100 worlds" in again.printed


def test_results_of_other_code_are_not_counted(tmp_path: Path) -> None:
    Ran(tmp_path, small_worlds.play).command.search(range(1, 51))
    other = Ran(tmp_path, small_worlds.play, version="v2")
    other.command.search(range(1, 26))
    assert "kept for this code: 25 worlds" in other.printed


def test_a_failing_seed_is_shrunk_told_and_kept_as_plan_and_page(tmp_path: Path) -> None:
    ran = Ran(tmp_path, small_worlds.play_losing_order_3)
    assert ran.command.search(range(1, 101)) == 1
    plan = read_plan((tmp_path / "simulation" / "failed" / "The shop-37.json").read_text())
    assert [event.what for event in plan.events] == ["order.place", small_worlds.KINDS[37 % len(small_worlds.KINDS)]]
    assert plan.shape == {"brokers": 1}
    assert "order 3 is lost" in (tmp_path / "simulation" / "failed" / "The shop-37.html").read_text()
    for told in (
        "The shop fails in the world of seed 37: No order is lost. order 3 is lost",
        "Shrunk from 2 faults and 10 requests to 1 fault and 1 request, in",
        "Repeat: simulate --plan",
        "37.json",
        "37.html",
    ):
        assert told in ran.printed
    assert small_worlds.play_losing_order_3(plan).broken


def test_a_failure_is_not_exchanged_for_another_one_of_the_same_promise(tmp_path: Path) -> None:
    ran = Ran(tmp_path, small_worlds.play_losing_order_3_or_its_customer)
    assert ran.command.search(range(37, 38)) == 1
    plan = read_plan((tmp_path / "simulation" / "failed" / "The shop-37.json").read_text())
    (broken,) = small_worlds.play_losing_order_3_or_its_customer(plan).broken
    assert broken.text == "order 3 of 1 is lost at 0x7f3a"


def test_a_second_failure_of_the_same_promise_is_shrunk_as_well(tmp_path: Path) -> None:
    ran = Ran(tmp_path, small_worlds.play_with_two_errors)
    assert ran.command.search(range(1, 61), goes_on=True) == 1
    plans = sorted(file.name for file in (tmp_path / "simulation" / "failed").glob("*.json"))
    assert plans == ["The shop-20.json", "The shop-40.json"]
    assert ran.printed.count("fails in the same way") == 1


def test_a_seed_that_failed_fails_again_in_the_next_run(tmp_path: Path) -> None:
    Ran(tmp_path, small_worlds.play_losing_order_3).command.search(range(1, 101))
    assert Ran(tmp_path, small_worlds.play_losing_order_3).command.search(range(1, 101)) == 1


def test_a_search_that_goes_on_plays_all_seeds_and_shrinks_one_world_for_each_promise(tmp_path: Path) -> None:
    ran = Ran(tmp_path, small_worlds.play_losing_every_fiftieth)
    assert ran.command.search(range(1, 201), goes_on=True) == 1
    assert "kept for this code: 200 worlds" in ran.printed
    assert len(list((tmp_path / "simulation" / "failed").glob("*.json"))) == 2
    assert ran.printed.count("fails in the same way") == 2
    later = Ran(tmp_path, small_worlds.play_losing_every_fiftieth)
    assert later.command.search(range(1, 201), goes_on=True) == 1
    assert later.printed.count("failed in an earlier run") == 4


def test_a_kind_that_never_fired_in_a_thousand_worlds_fails_the_run(tmp_path: Path) -> None:
    ran = Ran(tmp_path, small_worlds.play_without_freezes)
    assert ran.command.search(range(1, 1001)) == 1
    assert "never happened" in ran.printed
    assert ran.printed.strip().endswith("process.freeze")


def test_fewer_worlds_may_lack_a_kind(tmp_path: Path) -> None:
    assert Ran(tmp_path, small_worlds.play_without_freezes).command.search(range(1, 101)) == 0


@pytest.mark.parametrize(("seed", "told"), [(3, "its process died: exit code 7"), (4, "KeyError: 'customers' in play_hanging")])
def test_a_world_whose_code_breaks_is_a_failing_one(tmp_path: Path, seed: int, told: str) -> None:
    ran = Ran(tmp_path, small_worlds.play_hanging_or_dying)
    assert ran.command.search(range(seed, seed + 1)) == 1
    assert "A world runs to its end." in ran.printed
    assert told in ran.printed


def test_a_world_without_an_end_is_a_failing_one(tmp_path: Path) -> None:
    ran = Ran(tmp_path, small_worlds.play_hanging_or_dying)
    command = SearchCommand(
        ran.command.worlds, ran.command.console, tmp_path, "v1", "simulate", processes=1, shrinking_tries=1, patience_s=2.0
    )
    assert command.search(range(2, 3)) == 1
    assert "it had no end after 2 s" in ran.printed


def test_one_seed_is_played_told_and_drawn(tmp_path: Path) -> None:
    ran = Ran(tmp_path, small_worlds.play)
    assert ran.command.play_seed(4711) == 0
    assert "Digest: digest of 4711" in ran.printed
    assert "World 4711" in ran.printed
    assert "simulate --seed 4711" in (tmp_path / f"{ran.command.worlds.name}-4711.html").read_text()


def test_a_kept_plan_is_played(tmp_path: Path) -> None:
    file = tmp_path / "lost.json"
    file.write_text(small_worlds.plan_of(37).written())
    ran = Ran(tmp_path, small_worlds.play_losing_order_3)
    assert ran.command.play_plan(read_plan(file.read_text()), file) == 1
    assert "order 3 is lost" in ran.printed


def test_seeds_whose_worlds_differ_between_interpreters_are_named(tmp_path: Path) -> None:
    ran = Ran(tmp_path, small_worlds.play_by_the_hash_of_a_text)
    assert ran.command.check_digests(range(1, 8)) == 1
    assert [line.split(" is ")[0] for line in ran.printed.splitlines() if "not the same" in line] == ["World 5"]
    assert ran.command.check_digests(range(6, 10)) == 0


def test_a_plan_whose_world_lacks_what_a_fault_hits_is_refused_with_a_sentence(tmp_path: Path) -> None:
    fault = PlannedEvent(3.0, "process.kill", "worker-2", 1.0)
    file = tmp_path / "plan.json"
    file.write_text(Plan(1, {}, (fault,), 10.0).written())
    refused = CliRunner().invoke(app, [*ARGUMENTS, "--plan", str(file), "--output", str(tmp_path)])
    assert refused.exit_code == 2
    assert "process.kill at 3 s cannot hit worker-2" in refused.output.replace("\n", " ")
    assert list(tmp_path.iterdir()) == [file]


PROGRAM = """
import sys
from pathlib import Path
from rich.console import Console
from rocketmq_broker.testing.exploring.search.command import SearchCommand
from tests.lab.simulation import small_worlds
if __name__ == "__main__":
    worlds = small_worlds.worlds_of(small_worlds.play_slowly)
    try:
        SearchCommand(worlds, Console(), Path(sys.argv[1]), "v1", "simulate", processes=2).search(range(1, 10_001))
    except KeyboardInterrupt:
        sys.exit(130)
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_a_stopped_search_leaves_no_process_and_goes_on_later(tmp_path: Path, number: signal.Signals, code: int) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'broker'}"}
    search = subprocess.Popen([sys.executable, program, tmp_path], env=environment, start_new_session=True)
    kept = tmp_path / "simulation" / "v1.jsonl"
    while not kept.exists() or not kept.stat().st_size:  # it is there before its first line is
        assert search.poll() is None
        psutil.wait_procs([], timeout=0.1)
    children = psutil.Process(search.pid).children(recursive=True)
    os.killpg(search.pid, number) if number == signal.SIGINT else search.send_signal(number)  # a terminal tells the whole group
    assert search.wait(timeout=30) == code
    assert psutil.wait_procs(children, timeout=30)[1] == []
    kept_bytes = kept.read_bytes()
    assert kept_bytes.endswith(b"\n")
    lines = kept_bytes.splitlines()
    first = json.loads(lines[0])["seed"]
    later = Ran(tmp_path, small_worlds.play)
    assert later.command.search(range(first, first + 1)) == 0
    assert f"kept for this code: {len(lines)} worlds" in later.printed
