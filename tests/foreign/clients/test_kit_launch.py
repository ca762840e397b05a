"""Tests the kit's launcher with substitutes for Maven and Java: nothing is built, and no case runs."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

LAUNCH = Path(__file__).parent / "java" / "launch"

Launch = Callable[[str], "subprocess.CompletedProcess[str]"]
"""Runs the launcher with that script for Maven."""


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    programs = tmp_path / "bin"
    programs.mkdir()

    def run(maven: str) -> subprocess.CompletedProcess[str]:
        for name, script in (("mvn", maven), ("java", "echo '{}'")):
            (programs / name).write_text(f"#!/bin/sh\n{script}\n")
            (programs / name).chmod(0o755)
        environment = {"PATH": f"{programs}:{os.environ['PATH']}", "KIT_BUILD": str(tmp_path / "build")}
        return subprocess.run([LAUNCH, "Main"], env=environment, capture_output=True, text=True, check=False)

    return run


def test_a_build_that_succeeds_leaves_the_output_to_the_program(launch: Launch) -> None:
    done = launch("printf '\\033[0m'; printf '\\033[0m' >&2")
    assert (done.returncode, done.stdout, done.stderr) == (0, "{}\n", "")


def test_a_build_that_fails_says_why_and_nothing_runs(launch: Launch) -> None:
    done = launch("echo 'package x does not exist'; exit 1")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "package x does not exist\n")
