"""Tests that runs with the same seed are identical to the byte."""

import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[3]


def test_two_runs_with_one_seed_leave_the_same_bytes_and_one_with_another_does_not() -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.unit.testing.repeated_run", str(seed)],
            cwd=CHECKOUT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed, hash_seed in ((7, "1"), (7, "2"), (8, "1"))
    ]
    first, second, other = (process.communicate()[0].splitlines() for process in running)
    assert [process.returncode for process in running] == [0, 0, 0]
    assert first == second
    assert first[-1] == other[-1] == "127.0.0.1:9876 127.0.0.1:10911"
    assert (first[0], first[1]) != (other[0], other[1])
