import ast
from pathlib import Path

from tests.side_by_side import scope_of

ROOT = Path(__file__).resolve().parents[2]


def test_the_tests_of_a_file_stay_together() -> None:
    assert scope_of("tests/e2e/test_demo.py::test_a[1::2]") == scope_of("tests/e2e/test_demo.py::TestB::test_c")
    assert scope_of("tutorials/twice-is-once/test_twice.py::test_a") == "tutorials/twice-is-once/test_twice.py"


def test_all_chapters_stay_together() -> None:
    chapters = {scope_of(f"tutorials/{chapter}/README.md::line:{line},column:1") for chapter in ("a", "b") for line in (1, 2)}
    assert len(chapters) == 1


def test_the_tests_have_one_spark_session_for_a_process() -> None:
    """A fixture of another file, or imported under the same name, would start a second session beside it, and fail."""
    files = [path for folder in ("tests", "tutorials") for path in (ROOT / folder).rglob("*.py")]
    texts = {path: text for path in files if "spark" in (text := path.read_text())}
    starting = {path for path, text in texts.items() if defines_a_session_of_spark(ast.parse(text))}
    assert starting == {ROOT / "tests" / "conftest.py"}


def defines_a_session_of_spark(tree: ast.Module) -> bool:
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return "spark" in functions | names or "spark_session" in names
