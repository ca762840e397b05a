"""Tests of which build of the broker `make demo`, `up`, `bench` and `bench-orders` use, and of the printed messages."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PYTHON = "Python 3.11.2 (main) [GCC 12.2.0]"
SHOW = 'echo "${ROCKETMQ_BROKER_COMPILED:-source} ${PYTHONPATH:-}"'
TARGETS = ("demo", "up", "bench", "bench-orders")


class Checkout:
    """A checkout with a broker of one module, and a fake Python that only prints its version."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write("requirements.lock", "librt==0.12.0 \\\nmypy==2.4.0 \\\ntyper==0.16.0 \\\n")
        self.write("broker/rocketmq_broker/record.py", "SIZE = 1\n")
        self.write("broker/build_backend/compiled_modules.py", "COMPILED_MODULES = ('rocketmq_broker.record',)\n")
        self.write("broker/pyproject.toml", "")
        self.write("broker/setup.py", "")
        self.write("deploy/scripts/broker-build", (ROOT / "deploy" / "scripts" / "broker-build").read_text())
        self.install(PYTHON)

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def install(self, python: str) -> None:
        self.write(".venv/bin/python", f"#!/bin/sh\necho '{python}'\n")

    def compile(self) -> None:
        """Creates the same files as deploy/scripts/compile."""
        self.write("build/compiled/.made-from", self.run("--stamp").stdout)

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        ours = ("COMPILED", "ROCKETMQ_BROKER_COMPILED", "PYTHONPATH")
        kept = {name: value for name, value in os.environ.items() if name not in ours}
        command = [self.folder / "deploy" / "scripts" / "broker-build", *arguments]
        return subprocess.run(command, env=kept | environment, capture_output=True, text=True, timeout=60)

    def is_compiled(self, **environment: str) -> tuple[bool, str]:
        """Returns whether a command uses the compiled broker, and the output of the script."""
        ran = self.run("sh", "-c", SHOW, **environment)
        assert ran.returncode == 0, ran.stderr
        build, path = ran.stdout.removesuffix("\n").split(" ")
        assert path == (f"{self.folder}/build/compiled" if build == "1" else "")
        return build == "1", ran.stderr


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_without_a_compiled_build_the_source_runs_and_how_to_compile_is_said(checkout: Checkout) -> None:
    assert checkout.is_compiled() == (False, "broker: Python source; `make compile` makes it faster\n")


def test_a_build_of_this_very_source_runs(checkout: Checkout) -> None:
    checkout.compile()
    assert checkout.is_compiled() == (True, "broker: compiled (build/compiled)\n")
    checkout.write("broker/README.md", "A page.\n")
    checkout.write("broker/.mypy_cache/3.11/record.data.json", "{}")
    checkout.write("broker/build/temp/record.o", "")
    checkout.write("broker/rocketmq_broker/__pycache__/record.cpython-311.pyc", "")
    assert checkout.is_compiled()[0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("broker/rocketmq_broker/record.py", "SIZE = 2\n"),
        ("broker/rocketmq_broker/page.css", "p { color: black }\n"),
        ("broker/build_backend/compiled_modules.py", "COMPILED_MODULES = ()\n"),
        ("requirements.lock", "librt==0.13.0 \\\nmypy==2.4.0 \\\n"),
    ],
)
def test_a_build_of_another_source_never_runs(checkout: Checkout, name: str, text: str) -> None:
    checkout.compile()
    checkout.write(name, text)
    is_compiled, said = checkout.is_compiled()
    assert not is_compiled
    assert said == "broker: Python source; build/compiled is of another source or Python: `make compile` renews it\n"


def test_a_build_for_another_python_never_runs(checkout: Checkout) -> None:
    checkout.compile()
    checkout.install(PYTHON.replace("3.11.2", "3.13.0"))
    is_compiled, said = checkout.is_compiled()
    assert (is_compiled, "another source or Python" in said) == (False, True)


def test_a_switch_takes_the_source_whatever_is_there(checkout: Checkout) -> None:
    checkout.compile()
    assert checkout.is_compiled(COMPILED="0") == (False, "broker: Python source (COMPILED=0)\n")
    assert checkout.is_compiled(COMPILED="0", ROCKETMQ_BROKER_COMPILED="1")[0] is False


def test_the_commands_exit_code_and_words_pass_through(checkout: Checkout) -> None:
    ran = checkout.run("sh", "-c", 'echo "$1"; exit 3', "sh", "two  words")
    assert (ran.returncode, ran.stdout) == (3, "two  words\n")


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_demonstrated_or_measured_asks_which_build_to_run(target: str) -> None:
    make = shutil.which("make")
    if make is None:
        pytest.skip("no make: apt-get install make")
    planned = subprocess.run([make, "--dry-run", target], cwd=ROOT, capture_output=True, text=True, timeout=60).stdout
    assert re.search(r"deploy/scripts/broker-build \.venv/bin/python -m (demo|lab\.benchmarks)", planned)
