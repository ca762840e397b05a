import ast
from pathlib import Path

import pytest

from tests.parsed import parsed
from tests.side_by_side import LONGEST, ONE_PLACE, ONE_SPARK, WHOLE_TREE, computes, needs_the_place, next_scope, scope_of

ROOT = Path(__file__).resolve().parents[2]


def test_the_tests_of_a_file_stay_together() -> None:
    assert scope_of("tests/e2e/test_full_disk.py::test_a[1::2]") == scope_of("tests/e2e/test_full_disk.py::TestB::test_c")
    assert scope_of("tutorials/twice-is-once/test_twice.py::test_a") == "tutorials/twice-is-once/test_twice.py"


@pytest.mark.parametrize("path", ["tutorials/see-it-happen/README.md", "tutorials/pay-later/README.md"])
def test_what_shares_the_fixed_ports_or_the_folder_data_stays_together(path: str) -> None:
    assert {scope_of(f"{path}::line:{line},column:1") for line in (1, 2)} == {ONE_PLACE}


def test_what_reads_the_whole_tree_stays_together_because_it_shares_what_it_parses() -> None:
    paths = ("tests/unit/test_one_world.py", "tests/unit/test_architecture.py")
    assert {scope_of(f"{path}::test_a") for path in paths} == {WHOLE_TREE}
    assert scope_of("tests/unit/acl/test_access.py::test_a") == "tests/unit/acl/test_access.py"


def test_who_takes_the_session_of_spark_stays_together() -> None:
    paths = ("tests/foreign/spark/session/test_watch_turns.py", "tests/foreign/spark/session/test_increments.py")
    assert {scope_of(f"{path}::test_a") for path in paths} == {ONE_SPARK}
    assert scope_of("tests/component/pipelines/test_outputs.py::test_a") == "tests/component/pipelines/test_outputs.py"


def test_a_chapter_that_shares_nothing_runs_beside_the_others() -> None:
    assert scope_of("tutorials/kill-everything/README.md::line:1,column:1") == "tutorials/kill-everything/README.md"


@pytest.mark.parametrize("scope", [WHOLE_TREE, ONE_SPARK, "tests/unit/acl/test_access.py", "tests/component/app/test_access.py"])
def test_what_computes_runs_beside_what_waits(scope: str) -> None:
    waits = "tests/foreign/apache/test_race_on_apache.py"
    assert (computes(scope), computes(waits), computes(ONE_PLACE)) == (True, False, False)
    assert next_scope([waits, scope], computing=True) == scope
    assert next_scope([scope, waits], computing=False) == waits


def test_a_process_helps_the_others_when_its_own_kind_is_done() -> None:
    assert next_scope(["tests/unit/a.py", "tests/unit/b.py"], computing=False) == "tests/unit/a.py"
    assert next_scope(["tests/e2e/a.py", "tests/e2e/b.py"], computing=True) == "tests/e2e/a.py"


@pytest.mark.parametrize("longest", LONGEST)
def test_the_longest_files_begin_first(longest: str) -> None:
    assert (ROOT / longest).exists()
    for computing in (True, False):
        assert next_scope(["tests/unit/a.py", "tests/e2e/a.py", longest], computing=computing) == longest


@pytest.mark.parametrize(
    ("block", "shares"),
    [("curl 127.0.0.1:8080/orders", True), ("mkdir -p data/tutorial", True), ("make demo", False), ("echo 18080 mydata", False)],
)
def test_a_chapter_shares_what_its_blocks_name(tmp_path: Path, block: str, shares: bool) -> None:
    chapter = tmp_path / "tutorials" / "a" / "README.md"
    chapter.parent.mkdir(parents=True)
    chapter.write_text(f"It says data/ and 8080.\n\n```bash\n{block}\n```\n")
    assert needs_the_place(chapter) is shares


def test_the_tests_have_one_spark_session_for_a_process() -> None:
    """A fixture in another file, or imported under the same name, would start a second session and fail."""
    files = [path for folder in ("tests", "tutorials") for path in (ROOT / folder).rglob("*.py")]
    starting = {path for path in files if "spark" in path.read_text() and defines_a_session_of_spark(parsed(path))}
    assert starting == {ROOT / "tests" / "conftest.py"}


def defines_a_session_of_spark(tree: ast.Module) -> bool:
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return "spark" in functions | names or "spark_session" in names
