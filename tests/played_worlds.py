"""Prints the number of simulated worlds that a test run has played, at the end of the run."""

from typing import Final

import pytest

WORLDS_PLAYED: Final = "simulated worlds"
"""The property of a test's report in which the test says how many worlds it has played."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the number if it is not 0."""
    reports = [report for group in ("passed", "failed") for report in terminalreporter.stats.get(group, [])]
    played = sum(
        int(value) for report in reports for name, value in getattr(report, "user_properties", []) if name == WORLDS_PLAYED
    )
    if played:
        terminalreporter.write_line(f"{played} simulated worlds were played")
