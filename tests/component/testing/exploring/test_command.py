"""Explored tests run from the command line, in other processes."""

import io
import tempfile
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from rocketmq_broker.platform.memory import memory_folder
from rocketmq_broker.testing.exploring import UnusableTest
from rocketmq_broker.testing.exploring.__main__ import app
from rocketmq_broker.testing.exploring.explore import worlds_of
from rocketmq_broker.testing.exploring.search.command import SearchCommand
from rocketmq_broker.testing.exploring.search.processes import PATIENCE_S, PlayingProcesses
from rocketmq_broker.testing.simulation.plan import read_plan
from tests.component.testing.exploring.explored_bank import (
    PID_FILE,
    each_order_is_credited_once,
    ends_its_process,
    ends_its_process_early,
    exits_when_it_has_run,
    fails_early,
    needs_a_fixture,
    never_ends_with_a_database,
    no_order_is_credited,
)

MODULE = "tests.component.testing.exploring.explored_bank"
BANK = f"{MODULE}:each_order_is_credited_once"


class Ran:
    """A command for an explored test, and its output."""

    def __init__(self, folder: Path, test: object) -> None:
        self._printed = io.StringIO()
        console = Console(file=self._printed, width=200)
        self.command = SearchCommand(
            worlds_of(test),  # type: ignore[arg-type]
            console,
            folder,
            "v1",
            "explore",
            processes=1,
            shrinking_tries=5,
            patience_s=PATIENCE_S,
        )

    @property
    def printed(self) -> str:
        return self._printed.getvalue()


def test_the_command_plays_the_worlds_that_the_decorator_plays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran(tmp_path, each_order_is_credited_once)
    assert ran.command.search(range(1, 6)) == 0
    assert ran.command.search(range(1, 11)) == 0
    assert "kept for this code: 10 worlds" in ran.printed
    fired = [line for line in ran.printed.splitlines() if line.startswith(("fired: ", "never fired: "))]
    test = each_order_is_credited_once.test  # type: ignore[attr-defined]
    ends = [test.play(seed, False) for seed in range(1, 11)]
    for kind in {kind for end in ends for kind in end.fired}:
        count = sum(end.fired.get(kind, 0) for end in ends)
        assert f"{kind} {count}" in fired[-2] if count else kind in fired[-1]


def test_a_failure_is_shrunk_and_its_plan_fails_again(tmp_path: Path) -> None:
    ran = Ran(tmp_path, no_order_is_credited)
    assert ran.command.search(range(1, 6)) == 1
    assert "no_order_is_credited fails in the world of seed 1: AssertionError: an order is credited" in ran.printed
    file = tmp_path / "simulation" / "failed" / "no_order_is_credited-1.json"
    assert f"Repeat: explore --plan {file}" in ran.printed
    assert ran.command.play_plan(read_plan(file.read_bytes()), file) == 1


def test_a_world_that_ends_its_process_is_reported_with_the_plan_of_its_seed(tmp_path: Path) -> None:
    ran = Ran(tmp_path, ends_its_process)
    assert ran.command.search(range(3, 4)) == 1
    assert "A world runs to its end. its process died: exit code 7" in ran.printed
    assert read_plan((tmp_path / "simulation" / "failed" / "ends_its_process-3.json").read_bytes()).seed == 3


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        (ends_its_process_early, "ends_its_process_early does not reach its call of world.run: its process died: exit code 7"),
        (fails_early, "fails_early fails before it calls world.run: ValueError: no bank in fails_early, explored_bank.py line"),
    ],
)
def test_a_test_that_ends_before_its_world_runs_cannot_be_searched(tmp_path: Path, test: object, reason: str) -> None:
    with pytest.raises(UnusableTest, match=reason):
        Ran(tmp_path, test).command.search(range(1, 2))


def test_an_exit_of_the_test_is_a_failure_whose_text_is_printed_as_it_is(tmp_path: Path) -> None:
    ran = Ran(tmp_path, exits_when_it_has_run)
    assert ran.command.search(range(1, 3), goes_on=True) == 1
    assert r"fails in the world of seed 1: SystemExit: order:key:1 \udce9" in ran.printed
    assert r"World 2 fails in the same way: SystemExit: order:key:1 \udce9" in ran.printed
    page = tmp_path / "simulation" / "failed" / "exits_when_it_has_run-1.html"
    assert "order:key:1 \\udce9" in page.read_text(encoding="utf-8")


def test_a_process_that_is_killed_leaves_no_database(tmp_path: Path) -> None:
    written, worlds = tmp_path / "process", Ran(tmp_path, never_ends_with_a_database).command.worlds
    with PlayingProcesses(worlds, 1, patience_s=5.0, environment={PID_FILE: str(written)}) as processes:
        assert "it had no end after 5 s" in processes.play(1).broken[0].text
    folders = (memory_folder() or Path(tempfile.gettempdir())).glob(f"simulated-{written.read_text()}-*")
    assert list(folders) == []


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        ("no_such:test", "the module no_such cannot be imported: ModuleNotFoundError: No module named 'no_such'\n"),
        (f"{MODULE}:credits", f"the module {MODULE} has no credits"),
        (MODULE, "not a test: write MODULE:TEST, such as tests.test_shop:test_credit"),
        (":x:", "not a test: write MODULE:TEST"),
        ("..:x", "not a test: write MODULE:TEST"),
    ],
)
def test_a_test_that_does_not_exist_is_refused_with_a_sentence(tmp_path: Path, test: str, reason: str) -> None:
    ran = CliRunner().invoke(app, [test, "--output", str(tmp_path), "--code", __file__])
    assert ran.exit_code == 2
    assert ran.output.startswith(f"{test}: {reason}")


def test_a_folder_that_cannot_be_written_is_refused_with_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    ran = CliRunner().invoke(app, [BANK, "--seed", "7", "--output", str(file / "folder"), "--code", __file__])
    assert ran.exit_code == 2
    assert ran.output.endswith("folder: Not a directory\n")


def test_options_of_two_actions_are_refused(tmp_path: Path) -> None:
    for options, reason in (
        (("--seed", "7", "--check-digests", "2"), "use only one of --seed, --plan and --check-digests"),
        (("--picture", str(tmp_path / "world.svg")), "--picture needs --seed or --plan"),
    ):
        ran = CliRunner().invoke(app, [BANK, *options, "--output", str(tmp_path), "--code", __file__])
        assert ran.exit_code == 2
        assert reason in ran.output


def test_two_tests_in_one_folder_keep_their_results_apart(tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, [BANK, "--seeds", "2", "--output", str(tmp_path), "--code", __file__])
    assert ran.exit_code == 0, ran.output
    other = f"{MODULE}:no_order_is_credited"
    ran = CliRunner().invoke(app, [other, "--seeds", "2", "--output", str(tmp_path), "--code", __file__])
    assert ran.exit_code == 1
    assert "AssertionError: an order is credited" in ran.output


def test_the_plan_of_a_seed_is_the_one_that_is_played() -> None:
    worlds = worlds_of(each_order_is_credited_once)
    assert worlds.plan_of(3) == worlds.play(3, False).plan


def test_a_test_with_fixtures_is_refused() -> None:
    with pytest.raises(UnusableTest, match="needs_a_fixture needs pytest for its parameter `tmp_path`"):
        worlds_of(needs_a_fixture)
    with pytest.raises(UnusableTest, match="it must be a function with the decorator @explore"):
        worlds_of(test_a_test_with_fixtures_is_refused)


def test_one_seed_is_played_and_drawn(tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, [BANK, "--seed", "7", "--output", str(tmp_path), "--code", __file__])
    assert ran.exit_code == 0, ran.output
    assert "Every promise held" in ran.output
    assert f"{BANK} --seed 7" in (tmp_path / f"{BANK.partition(':')[2]}-7.html").read_text()


def test_digests_of_new_interpreters_are_equal(tmp_path: Path) -> None:
    assert Ran(tmp_path, each_order_is_credited_once).command.check_digests(range(1, 3)) == 0


def test_a_plan_with_an_unknown_target_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text('{"seed": 1, "ends_s": 4, "shape": {}, "events": [{"at_s": 1, "what": "process.kill", "where": "pub"}]}')
    ran = CliRunner().invoke(app, [BANK, "--plan", str(file), "--output", str(tmp_path), "--code", __file__])
    assert ran.exit_code == 2
    assert "process.kill at 1 s has an unknown target pub" in ran.output.replace("\n", " ")
