"""Ctrl-C while a program imports, and after that."""

import subprocess
import sys

import pytest

BEGUN = """
import signal
from rocketmq_broker.stop_signals import exit_at_once_on_ctrl_c, until_interrupted

exit_at_once_on_ctrl_c()
"""
WORKING = """
with until_interrupted("Stopped: nothing was written."):
    try:
        signal.raise_signal(signal.SIGINT)
    finally:
        print("cleaned up")
"""


@pytest.mark.parametrize(
    ("rest", "said", "left"),
    [
        ("signal.raise_signal(signal.SIGINT)", "\nStopped.\n", ""),
        (WORKING, "\nStopped: nothing was written.\n", "cleaned up\n"),
    ],
    ids=["importing", "working"],
)
def test_a_program_ends_with_a_sentence_and_status_130(rest: str, said: str, left: str) -> None:
    done = subprocess.run([sys.executable, "-c", BEGUN + rest], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr, done.stdout) == (130, said, left)
