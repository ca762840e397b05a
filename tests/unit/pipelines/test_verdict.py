from io import StringIO

import pytest
import typer
from pyspark.errors import AnalysisException
from rich.console import Console

from pipelines.commands.verdict import Verdict, exit_with
from pipelines.errors import UnreadableDatabase
from pipelines.judging.classes import Finding
from pipelines.judging.totals import FindingTotal, Tolerance
from pipelines.reporting.report import age, amount

WORKER_TRACEBACK = """[PYTHON_DATA_SOURCE_ERROR] Failed: Traceback (most recent call last):
  File "pipelines/adbc.py", line 79, in _cursor
pipelines.errors.UnreadableDatabase: database db:5432/orders: terminating connection
\tat org.apache.spark.Something
Caused by: java.lang.RuntimeException: Wrapped"""


def outcome_of(error: Exception) -> tuple[int, str]:
    screen = StringIO()

    def judge() -> bool:
        raise error

    with pytest.raises(typer.Exit) as ended:
        exit_with(judge, Console(file=screen, width=80))
    return ended.value.exit_code, screen.getvalue()


@pytest.mark.parametrize(("consistent", "code"), [(True, Verdict.CONSISTENT), (False, Verdict.INCONSISTENT)])
def test_a_verdict_is_an_exit_code(consistent: bool, code: Verdict) -> None:
    with pytest.raises(typer.Exit) as ended:
        exit_with(lambda: consistent, Console(file=StringIO()))
    assert ended.value.exit_code == code


def test_a_known_error_is_one_line_and_exit_code_2() -> None:
    assert outcome_of(UnreadableDatabase("database x: gone\nand more")) == (2, "could not tell: database x: gone and more\n")


def test_an_error_from_a_worker_is_reduced_to_our_own_words() -> None:
    code, line = outcome_of(AnalysisException(WORKER_TRACEBACK))
    assert code == 2
    assert line == "could not tell: database db:5432/orders: terminating connection\n"


def test_a_mistake_of_ours_is_no_inconsistency() -> None:
    assert outcome_of(KeyError("slip")) == (2, "could not tell: KeyError: 'slip'\n")


HEALTHY = (Finding.MATCHED, Finding.ROLLED_BACK, Finding.REVERSED, Finding.ENDED, Finding.IN_FLIGHT)


@pytest.mark.parametrize("finding", list(Finding))
def test_only_what_healthy_systems_show_is_consistent(finding: Finding) -> None:
    assert Tolerance().is_consistent([FindingTotal(finding, 1)]) == (finding in HEALTHY)


def test_what_was_not_found_is_consistent() -> None:
    assert Tolerance().is_consistent([FindingTotal(finding, 0) for finding in Finding])


def test_a_class_that_is_allowed_does_not_fail() -> None:
    tolerance = Tolerance(allowed=frozenset({Finding.OVERDUE}))
    assert tolerance.is_consistent([FindingTotal(Finding.OVERDUE, 1)])
    assert not tolerance.is_consistent([FindingTotal(Finding.MISSING_CREDIT, 1)])


def test_a_healthy_class_fails_if_it_is_named() -> None:
    tolerance = Tolerance(failing=frozenset({Finding.IN_FLIGHT}))
    assert not tolerance.is_consistent([FindingTotal(Finding.IN_FLIGHT, 1)])
    assert tolerance.is_consistent([FindingTotal(Finding.MATCHED, 1)])


def test_amounts_show_units_and_cents() -> None:
    assert [amount(cents) for cents in (0, 5, 123456789, -150)] == ["0.00", "0.05", "1,234,567.89", "-1.50"]
    assert amount(1250, "EUR") == "12.50 EUR"


def test_ages_show_their_greatest_unit() -> None:
    assert [age(ms) for ms in (-5, 0, 59_999, 60_000, 7_200_000, 3 * 86_400_000)] == [
        "0 s", "0 s", "59 s", "1 min", "2 h", "3 d",
    ]  # fmt: skip
