"""Each program imports its signal handling first, so that a stop signal ends it cleanly during the other imports."""

import ast
import re
from pathlib import Path

import pytest

from tests.parsed import parsed

ROOT = Path(__file__).parents[2]
PROGRAMS = [
    path
    for folder in ("broker", "order_service", "credit_service", "inventory_service", "demo", "lab", "pipelines", "tutorials")
    for path in (ROOT / folder).rglob("*.py")
    if re.search(r"^ *exit_at_once_on_", path.read_text(), re.MULTILINE)
]


def imports(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """Returns the imports of a module that run at import time, in order."""
    body = parsed(path).body
    inside = [statement for outer in body if isinstance(outer, ast.If) for statement in outer.body]
    return sorted((it for it in body + inside if isinstance(it, ast.Import | ast.ImportFrom)), key=lambda it: it.lineno)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: str(path.parent.relative_to(ROOT)))
def test_nothing_long_is_imported_before_a_signal_ends_the_program(program: Path) -> None:
    before = [path for folder in program.parents if (path := folder / "__init__.py").exists() for _ in imports(path)]
    assert before == [], "python -m imports these packages first: their __init__.py imports nothing"
    first = next(module for it in imports(program) if (module := names(it)) not in ("__future__", "sys"))
    assert first == "rocketmq_broker.stop_signals"


def names(statement: ast.Import | ast.ImportFrom) -> str | None:
    return statement.module if isinstance(statement, ast.ImportFrom) else statement.names[0].name


def test_the_programs_are_found() -> None:
    assert len(PROGRAMS) >= 19
