"""Tests of the mutants: what is changed, and that a copy with a mutant is tested and restored."""

from pathlib import Path

import pytest

from lab.mutants import ROOT, TESTS, drawn, mutants_of, noticed_by

SOURCE = '''"""A module: 1 + 1."""
import logging

logger = logging.getLogger(__name__)
LIMIT: int = 10


def sums(numbers: list[int]) -> int:
    """Returns the sum."""
    logger.debug("sum of %d numbers", len(numbers) + 1)
    total = 0
    for number in numbers:
        if number < LIMIT and not number == 3:
            total = total + number
    print(f"{total + 1}")
    return total
'''


def test_each_place_is_changed_alone() -> None:
    changes = [(mutant.line, mutant.before, mutant.after) for mutant in mutants_of("sums.py", SOURCE)]
    assert changes == [
        (5, "10", "(11)"),
        (11, "0", "(1)"),
        (13, "number < LIMIT and not number == 3", "(number < LIMIT or not number == 3)"),
        (13, "number < LIMIT", "(number <= LIMIT)"),
        (13, "not number == 3", "(number == 3)"),
        (13, "number == 3", "(number != 3)"),
        (13, "3", "(4)"),
        (14, "total + number", "(total - number)"),
        (15, 'print(f"{total + 1}")', "pass"),
        (16, "return total", "return None"),
    ]


def test_a_planted_source_differs_in_that_place_only() -> None:
    for mutant in mutants_of("sums.py", SOURCE):
        planted = mutant.planted_in(SOURCE.encode()).decode()
        pairs = zip(SOURCE.splitlines(), planted.splitlines(), strict=True)
        assert [number for number, (before, after) in enumerate(pairs, 1) if before != after] == [mutant.line]
        compile(planted, "sums.py", "exec")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "summing").mkdir()
    (tmp_path / "summing" / "sums.py").write_text(SOURCE)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_sums.py").write_text(
        "from summing.sums import sums\n\n\ndef test_sums():\n    assert sums([1, 2]) == 3\n"
    )
    return tmp_path


def test_a_seed_draws_the_same_mutants(project: Path) -> None:
    assert drawn(project, ["summing"], 1, 5) == drawn(project, ["summing"], 1, 5) != drawn(project, ["summing"], 2, 5)
    assert len(drawn(project, ["summing"], 1, 100)) == 10


def test_a_mutant_is_noticed_or_survives_and_the_copy_is_restored(project: Path) -> None:
    by_text = {mutant.before: mutant for mutant in mutants_of("summing/sums.py", SOURCE)}
    assert noticed_by(by_text["total + number"], project, ["tests"]) == "FAILED tests/test_sums.py::test_sums"
    assert noticed_by(by_text["number < LIMIT"], project, ["tests"]) is None
    assert (project / "summing" / "sums.py").read_text() == SOURCE


def test_each_package_and_its_tests_exist() -> None:
    assert [path for package, tests in TESTS.items() for path in (package, *tests) if not (ROOT / path).exists()] == []
