"""At the end of a run, the tests print how many simulated worlds they have played."""

from types import SimpleNamespace

from tests.played_worlds import WORLDS_PLAYED, pytest_terminal_summary


class Reporter:
    def __init__(self, **stats: list[object]) -> None:
        self.stats = stats
        self.lines: list[str] = []

    def write_line(self, line: str) -> None:
        self.lines.append(line)


def report(**properties: object) -> SimpleNamespace:
    return SimpleNamespace(user_properties=list(properties.items()))


def test_the_worlds_of_all_tests_are_added_up() -> None:
    played = SimpleNamespace(user_properties=[(WORLDS_PLAYED, 50)])
    reporter = Reporter(passed=[played, report(), played], failed=[played], deselected=[object()])
    pytest_terminal_summary(reporter)  # type: ignore[arg-type]
    assert reporter.lines == ["150 simulated worlds were played"]


def test_a_run_without_worlds_prints_nothing() -> None:
    reporter = Reporter(passed=[report(other="7")])
    pytest_terminal_summary(reporter)  # type: ignore[arg-type]
    assert reporter.lines == []
