"""Tests that the guard of tests/unit/conftest.py fails each test that is not a unit test, and reports the reason."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PURE = "sum(number for number in range(100_000))"
LEFT_BEHIND = """
import threading, time

def sleeping():
    while True:
        time.sleep(0.001)

threading.Thread(target=sleeping, daemon=True).start()
"""
IMPURE = {
    "import subprocess; subprocess.run(['true'])": "starts a program",
    "import socket; socket.socket().bind(('127.0.0.1', 0))": "opens a socket",
    "import sqlite3; sqlite3.connect(':memory:')": "opens a database",
    "import time; time.sleep(0.001)": "sleeps",
    "open('/var/tmp/written_elsewhere', 'w')": "writes a file outside its own folder",
    "try: __import__('os').fork() or __import__('os')._exit(0)\n    finally: pass": "starts a process",
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("unit")
    tests = [f"def test_{number}(tmp_path):\n    {deed}\n" for number, deed in enumerate([PURE, *IMPURE])]
    (folder / "test_deeds.py").write_text(LEFT_BEHIND + "".join(tests))
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "tests.unit.conftest", "-p", "no:cacheprovider",
        "-c", ROOT / "pyproject.toml", folder / "test_deeds.py",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    Path("/var/tmp/written_elsewhere").unlink(missing_ok=True)
    assert f"{len(IMPURE)} failed, 1 passed" in done.stdout, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("deed", IMPURE.values())
def test_an_impure_test_fails_with_a_sentence(told: str, deed: str) -> None:
    assert "is no unit test; move it to tests/component. It\n" in told
    assert f"\n  {deed}: " in told
