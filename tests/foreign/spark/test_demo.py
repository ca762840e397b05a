"""Tests `python -m demo` as a user runs it: its output and exit code, and that no process remains."""

import os
import re
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import psutil
import pytest

from demo.processes import PROJECT_ROOT
from pipelines.judging.classes import Finding
from tests.dead_proxies import DEAD_PROXIES

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(1300)]
MARK = "DEMO_TEST_RUN"
"""Every process of the demo inherits it, however deep."""


class DemoRun:
    """A demo in its own process, with its output in a file. An environment mark identifies the processes that it starts."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.mark = uuid.uuid4().hex
        self._output = folder / "output"
        with self._output.open("wb") as output:
            self.popen = subprocess.Popen(
                [sys.executable, "-m", "demo", "--orders", "80", "--lost-commit-every", "25", *options],
                cwd=PROJECT_ROOT,
                env={**os.environ, **DEAD_PROXIES, MARK: self.mark, "COLUMNS": "160", "TMPDIR": str(folder)},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def output(self) -> str:
        return self._output.read_text()

    def wait_for(self, text: str, timeout_s: float = 120) -> None:
        deadline = time.monotonic() + timeout_s
        while text not in self.output():
            assert self.popen.poll() is None, self.output()
            assert time.monotonic() < deadline, self.output()
            time.sleep(0.1)

    def processes(self) -> list[str]:
        """Returns the command lines of the demo's running processes."""
        return [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"]) if self._is_ours(process)]

    def wait_until_nothing_is_left(self, timeout_s: float = 60) -> None:
        deadline = time.monotonic() + timeout_s
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.2)
        assert left == [], self.output()

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            return process.environ().get(MARK) == self.mark and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False


def test_the_demo_ends_consistent_and_leaves_nothing(tmp_path: Path) -> None:
    run = DemoRun(tmp_path)
    assert run.popen.wait(1200) == 0, run.output()
    output = run.output()
    assert "76 orders placed and 4 refused" in output
    assert re.search(r"died (once|\d+ times) between local commit and COMMIT", output)
    assert int(re.search(r"(\d+) of 76 COMMITs were lost on the way: ", output)[1]) >= 1
    assert "SIGKILL to the broker" in output
    assert "check-back 1: the order service finds the order in its database and answers COMMIT" in output
    assert_each_half_message_is_explained(output)
    assert "consistent: 76 orders, 76 credits, 0 lost, 0 doubled" in output
    others = len(Finding) - len((Finding.MATCHED, Finding.ROLLED_BACK, Finding.UNCLASSIFIED))
    assert f"{others} other classes: none" in output
    assert "Parquet" not in output, "what is deleted is not shown"
    run.wait_until_nothing_is_left()
    assert [path.name for path in tmp_path.iterdir()] == ["output"], "its folder is gone"


@pytest.mark.release
def test_the_demo_on_two_brokers_ends_consistent_although_one_is_killed(tmp_path: Path) -> None:
    run = DemoRun(tmp_path, "--brokers", "2", "--keep", str(tmp_path / "a kept run"))
    assert run.popen.wait(1200) == 0, run.output()
    output = run.output()
    assert "SIGKILL to the broker-a (" in output
    assert_each_half_message_is_explained(output)
    assert "consistent: 76 orders, 76 credits, 0 lost, 0 doubled" in output
    run.wait_until_nothing_is_left()
    command = output.partition("To reconcile this run again:\n")[2].partition("\nData and logs")[0]
    printed = subprocess.run(
        ["bash", "-c", f"{command} --engine sqlite"], cwd=PROJECT_ROOT, capture_output=True, text=True, timeout=600
    )
    assert printed.returncode == 0, printed.stderr
    assert "consistent: 76 orders, 76 credits, 0 lost, 0 doubled" in printed.stdout


def assert_each_half_message_is_explained(output: str) -> None:
    held = int(
        re.search(r"This run left (\d+) half messages in the commit log, one for each attempt to place an order", output)[1]
    )
    rows = {words: int(count) for count, words in re.findall(r"^│ +(\d+) │ (\S.*?) +│$", output, re.MULTILINE)}
    assert rows.pop("in all; the broker committed 76 of them") == held == sum(rows.values())
    assert sum(count for words, count in rows.items() if words.startswith("committed")) == 76
    assert rows["rolled back by the order service: the order was above the limit"] == 4


@pytest.mark.release
def test_spark_says_what_it_does_while_it_does_it(tmp_path: Path) -> None:
    run = DemoRun(tmp_path, "--keep", str(tmp_path / "kept"))
    run.wait_for("Comparing orders and credits", timeout_s=1200)
    assert run.popen.poll() is None
    assert "consistent:" not in run.output()
    run.popen.send_signal(signal.SIGINT)
    assert run.popen.wait(60) == 130, run.output()
    run.wait_until_nothing_is_left()
    assert f"Data and logs are in {tmp_path}/kept" in run.output()
    assert (tmp_path / "kept" / "orders.db").is_file()


def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    run = DemoRun(tmp_path)
    run.wait_for("Started in")
    assert len(run.processes()) > 6
    run.popen.send_signal(signal.SIGINT)
    assert run.popen.wait(60) == 130, run.output()
    run.wait_until_nothing_is_left()


@pytest.mark.parametrize("options", [(), ("--brokers", "2")])
def test_kill_9_of_the_demo_itself_leaves_no_process(tmp_path: Path, options: tuple[str, ...]) -> None:
    run = DemoRun(tmp_path, *options)
    run.wait_for("Started in")
    run.popen.kill()
    run.popen.wait()
    run.wait_until_nothing_is_left()
