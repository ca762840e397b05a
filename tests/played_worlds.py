"""How many simulated worlds a run of the tests has played: pytest prints it at its end."""

from __future__ import annotations

from typing import Final

import pytest

WORLDS_PLAYED: Final = "simulated worlds"
"""The property of a test's report in which the test says how many worlds it has played."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the count, if there is any."""
    reports = [report for group in ("passed", "failed") for report in terminalreporter.stats.get(group, [])]
    played = sum(
        int(value) for report in reports for name, value in getattr(report, "user_properties", []) if name == WORLDS_PLAYED
    )
    if played:
        terminalreporter.write_line(f"{played} simulated worlds were played")
