"""Tests of deploy/scripts/setup: the packages that it installs, its output, and what it keeps. pip and Java are fakes."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PYTHON = """#!/bin/sh
case "$*" in
  -V) echo 'Python 3.11.2' ;;
  -VV) echo 'Python 3.11.2 (main) [GCC 12.2.0]' ;;
  '-m venv --clear .venv')
    rm -rf .venv; mkdir -p .venv/bin .venv/lib/python3.11/site-packages; cp "$0" .venv/bin/python; echo venv >>calls ;;
  *'pip install'*)
    for lock; do :; done
    echo "pip $lock" >>calls
    [ ! -e pip-fails ] || { echo 'no such package'; exit 1; }
    [ ! -e pip-hangs ] || { echo $$ >pip-pid; echo 'Collecting a==1'; exec sleep 60; }
    grep '==' "$lock" | sed 's/ .*//' | while read -r name; do
      echo "Collecting $name"
      mkdir -p ".venv/lib/python3.11/site-packages/$name.dist-info"
    done ;;
esac
"""
JAVA = """#!/bin/sh
echo 'openjdk version "17.0.1"' >&2
"""


class FreshCheckout:
    """A checkout that requires four packages. The demo needs two of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write("requirements.lock", "a==1 \\\nb==1 \\\nc[x]==1 \\\npyspark==1 \\\n")
        self.write(
            "deploy/docker/demo.lock", "a==1 \\\n    --hash=sha256:1\npyspark==1 \\\n    --hash=sha256:2\n    # via nobody\n"
        )
        self.write("deploy/scripts/setup", (ROOT / "deploy" / "scripts" / "setup").read_text())
        self.write("bin/python", PYTHON)
        self.write("bin/java", JAVA)
        self.write("bin/redis-server", "#!/bin/sh\n")
        path = f"{folder / 'bin'}:{os.environ['PATH']}"
        self.environment = {"PATH": path, "PYTHON": str(folder / "bin" / "python"), "NO_SPARK_CLASS_ARCHIVE": "1"}

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def command(self, *arguments: str) -> list[str]:
        return [str(self.folder / "deploy" / "scripts" / "setup"), *arguments]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.command(*arguments), env=self.environment, capture_output=True, text=True, check=False)

    def calls(self) -> list[str]:
        """Returns the packages that were installed since the last call."""
        calls = self.folder / "calls"
        told = calls.read_text().splitlines() if calls.exists() else []
        calls.unlink(missing_ok=True)
        return told


@pytest.fixture
def checkout(tmp_path: Path) -> FreshCheckout:
    return FreshCheckout(tmp_path)


def test_it_says_which_step_it_is_at_and_how_many_packages_are_there(checkout: FreshCheckout) -> None:
    done = checkout.run()
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said[0].startswith("setup: step 1 of 4: making .venv with ")
    assert said[1].startswith("setup: step 2 of 4: 4 packages of requirements.lock")
    assert re.fullmatch(r"setup: \d of 4 packages fetched, \d+ MB", said[2])
    assert said[3] == "setup: 4 of 4 packages installed"
    assert said[-1].startswith("setup: ready: Python 3.11.2, Java 17")


def test_a_second_run_says_only_that_all_is_ready(checkout: FreshCheckout) -> None:
    checkout.run()
    checkout.calls()
    again = checkout.run()
    assert [line.split(":")[1] for line in again.stdout.splitlines()] == [" ready"]
    assert checkout.calls() == []


def test_the_demo_gets_its_own_packages_and_the_others_are_added_when_a_target_needs_them(checkout: FreshCheckout) -> None:
    checkout.run("demo")
    assert checkout.calls() == ["venv", "pip deploy/docker/demo.lock"]
    checkout.run("demo")
    assert checkout.calls() == []
    checkout.run()
    assert checkout.calls() == ["pip requirements.lock"]
    checkout.run("demo")
    assert checkout.calls() == []


def test_up_gets_no_spark_and_needs_no_java_until_demo_adds_them(checkout: FreshCheckout) -> None:
    checkout.write("bin/java", "#!/bin/sh\nexit 1\n")
    done = checkout.run("up")
    assert done.returncode == 0, done.stderr
    assert checkout.calls() == ["venv", "pip .venv/up.lock"]
    assert (checkout.folder / ".venv" / "up.lock").read_text() == "a==1 \\\n    --hash=sha256:1\n"
    checkout.run("up")
    assert checkout.calls() == []
    checkout.write("bin/java", JAVA)
    added = checkout.run("demo")
    assert "adding what is missing" in added.stdout
    assert checkout.calls() == ["pip deploy/docker/demo.lock"]
    checkout.run("up")
    assert checkout.calls() == []


def test_all_is_added_to_what_up_has(checkout: FreshCheckout) -> None:
    checkout.run("up")
    checkout.calls()
    checkout.run()
    assert checkout.calls() == ["pip requirements.lock"]


def test_a_changed_lock_makes_it_anew(checkout: FreshCheckout) -> None:
    checkout.run("demo")
    checkout.calls()
    checkout.write("deploy/docker/demo.lock", "a==2 \\\npyspark==1 \\\n")
    checkout.run("demo")
    assert checkout.calls() == ["venv", "pip deploy/docker/demo.lock"]


def test_pips_last_lines_are_shown_where_it_fails_and_the_next_run_tries_again(checkout: FreshCheckout) -> None:
    checkout.write("pip-fails", "")
    failed = checkout.run()
    assert failed.returncode == 1
    assert "no such package" in failed.stderr
    assert "pip could not install requirements.lock" in failed.stderr
    (checkout.folder / "pip-fails").unlink()
    assert checkout.run().returncode == 0


def test_ctrl_c_ends_pip_too_and_says_how_to_go_on(checkout: FreshCheckout) -> None:
    checkout.write("pip-hangs", "")
    running = subprocess.Popen(
        checkout.command(), env=checkout.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0
    )
    assert running.stdout is not None
    next(line for line in running.stdout if "packages fetched" in line)
    hanging = checkout.folder / "pip-pid"
    while not hanging.exists() or not hanging.read_text():
        assert running.poll() is None
        time.sleep(0.01)
    os.killpg(running.pid, signal.SIGINT)
    _, complaint = running.communicate(timeout=30)
    assert running.returncode == 130
    assert "stopped; run the same command to continue" in complaint
    with pytest.raises(ProcessLookupError):
        os.kill(int(hanging.read_text()), 0)
    assert not (checkout.folder / ".venv" / "fetched").exists(), "what was fetched is of no use to the next run"


def test_another_set_of_packages_is_refused(checkout: FreshCheckout) -> None:
    refused = checkout.run("half")
    assert (refused.returncode, "deploy/scripts/setup demo" in refused.stderr) == (1, True)
    assert checkout.calls() == []


def test_on_macos_it_names_the_formulas_of_homebrew_and_calls_no_apt(checkout: FreshCheckout) -> None:
    checkout.write("bin/uname", "#!/bin/sh\necho Darwin\n")
    checkout.write("bin/java", "#!/bin/sh\necho 'Unable to locate a Java Runtime.' >&2\nexit 1\n")
    checkout.write("bin/apt-get", "#!/bin/sh\necho apt-get >>calls\n")
    missing = checkout.run()
    assert missing.returncode == 1
    assert "brew install redis openjdk@17, then export JAVA_HOME=$(brew --prefix openjdk@17)" in missing.stderr
    assert checkout.calls() == ["venv", "pip requirements.lock"]
    home = checkout.folder / "openjdk@17"
    checkout.write("openjdk@17/bin/java", JAVA)
    checkout.environment["JAVA_HOME"] = str(home)
    assert checkout.run().returncode == 0
