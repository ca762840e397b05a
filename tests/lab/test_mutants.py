"""Tests of the mutants: what is changed, and that a copy with a mutant is tested and restored."""

from pathlib import Path

import pytest

from lab.mutants import PACKAGES, ROOT, TESTS, ExecutedLines, drawn, failures, mutants_of, noticed_by, record

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


def test_statements_and_calls_have_mutants() -> None:
    source = (
        "def f(self, rows):\n    for row in sorted(rows, key=str):\n        if row:\n            continue\n"
        "        self.last = row\n        self.count += 2 * row\n"
        "    if not 0 <= self.count < 9:\n        raise ValueError(row)\n    return True\n"
    )
    changes = [(mutant.line, mutant.after) for mutant in mutants_of("rows.py", source)]
    assert changes == [
        (2, "(list(rows))"), (3, "(not row)"), (4, "break"), (5, "pass"), (6, "pass"), (6, "(2 // row)"), (6, "(3)"),
        (7, "(0 <= self.count < 9)"), (7, "(0 <= self.count <= 9)"), (7, "(1)"), (7, "(10)"), (8, "pass"), (9, "(False)"),
    ]  # fmt: skip


def test_a_mutant_is_noticed_or_survives_and_the_copy_is_restored(project: Path) -> None:
    by_text = {mutant.before: mutant for mutant in mutants_of("summing/sums.py", SOURCE)}
    assert noticed_by(by_text["total + number"], project, ["tests"]) == ["tests/test_sums.py::test_sums"]
    assert noticed_by(by_text["number < LIMIT"], project, ["tests"]) == []
    assert (project / "summing" / "sums.py").read_text() == SOURCE


def test_tests_that_fail_or_are_missing_without_a_mutant_are_failures(project: Path) -> None:
    (project / "tests" / "test_more.py").write_text("import nothing_like_this\n")
    assert failures(project, ["tests/test_sums.py"]) == []
    assert failures(project, ["tests"]) == ["tests/test_more.py"]
    assert failures(project, ["tests/of_old"]) == ["tests/of_old"]


def test_the_tests_that_execute_a_line_run_with_its_mutant_the_quickest_first(
    project: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "summing" / "pairs.py").write_text(
        "import time\n\nfrom summing.sums import sums\n\n\n"
        "def pair(a, b):\n    if a == b:\n        time.sleep(0.2)\n    return sums(\n        [a, b],\n    )\n"
    )
    (project / "tests" / "test_pairs.py").write_text(
        "import pytest\n\nfrom summing.pairs import pair\n\n\n"
        '@pytest.mark.parametrize("a", [1, 2])\ndef test_equal(a):\n    assert pair(a, a) == 2 * a\n\n\n'
        "def test_others():\n    assert pair(1, 2) == 3\n"
    )
    monkeypatch.setattr("lab.mutants.PACKAGES", ["summing"])
    monkeypatch.setattr("lab.mutants.TESTS", ["tests"])
    home = tmp_path_factory.mktemp("record")
    record(project, home)
    recorded = ExecutedLines(home)
    tests = {
        (mutant.file, mutant.line): recorded.tests_of(mutant)
        for name in ("summing/sums.py", "summing/pairs.py")
        for mutant in mutants_of(name, (project / name).read_text())
    }
    equal, others, sums = "tests/test_pairs.py::test_equal", "tests/test_pairs.py::test_others", "tests/test_sums.py::test_sums"
    assert {*tests["summing/sums.py", 14]} == {equal, others, sums}
    assert {*tests["summing/sums.py", 5]} == {equal, others, sums}  # executed by the import
    assert tests["summing/pairs.py", 7] == [others, equal]
    assert tests["summing/pairs.py", 8] == [equal]
    assert tests["summing/pairs.py", 9] == [others, equal]
    assert recorded.seconds[equal] > 0.4


def test_tests_that_fail_are_recorded_and_named(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "tests" / "test_more.py").write_text(
        "from summing.sums import sums\n\n\ndef test_more():\n    assert sums([1]) == 2\n"
    )
    monkeypatch.setattr("lab.mutants.PACKAGES", ["summing"])
    monkeypatch.setattr("lab.mutants.TESTS", ["tests"])
    home = tmp_path / "home"
    home.mkdir()
    record(project, home)
    assert capsys.readouterr().err == "1 tests failed while they were recorded: tests/test_more.py::test_more\n"
    mutants = mutants_of("summing/sums.py", SOURCE)
    assert {*ExecutedLines(home).tests_of(mutants[-1])} == {"tests/test_more.py::test_more", "tests/test_sums.py::test_sums"}


def test_each_package_and_its_tests_exist() -> None:
    assert [path for path in (*PACKAGES, *TESTS) if not (ROOT / path).exists()] == []
