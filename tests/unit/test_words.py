"""COMMIT is what the broker is told; a database has a local commit or a database commit (docs/glossary.md)."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.parsed import parsed

ROOT = Path(__file__).resolve().parents[2]
SERVICES = ("order_messages", "order_service", "credit_service", "inventory_service", "service_runtime")
PAGES = [*(ROOT / "tutorials").rglob("*.md"), *(ROOT / "tutorials" / "recipes").rglob("*.md")]
PAPERS = [ROOT / "README.md", *sorted(page for page in PAGES if page.name == "README.md"), ROOT / "docs" / "architecture.md"]

OF_A_DATABASE = re.compile(r"local_commit|commit_in_database", re.IGNORECASE)
THE_BROKERS = re.compile(r"broker commit|│ committed|is pending, not committed")
"""A line on which the broker commits, the demo counts what it committed, or a test says that it did not."""
NOT_A_DECISION = re.compile(
    r"`[^`\n]*`|#commit-and-local-commit|(local|database)[\s-]+commits?|commit log|commit_log"
    r"|[a-z-]+-commit|the-commit-that[a-z-]*|commit-(log|then-[a-z]+)",
    re.IGNORECASE,
)
PROGRAM = re.compile(r"^```python\n.*?^```$", re.DOTALL | re.MULTILINE)


def names_in(path: Path) -> Iterator[str]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


@pytest.mark.parametrize("package", SERVICES)
def test_a_name_of_a_service_that_says_commit_says_which(package: str) -> None:
    names = {name for path in (ROOT / package).rglob("*.py") for name in names_in(path)}
    assert {name for name in names if "commit" in name.lower() and not OF_A_DATABASE.search(name)} == set()


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: str(paper.relative_to(ROOT)))
def test_a_line_that_says_commit_in_small_letters_says_whose(paper: Path) -> None:
    text = NOT_A_DECISION.sub("", PROGRAM.sub("", paper.read_text()))
    unclear = [line for line in text.splitlines() if re.search(r"\bcommit(s|ted)?\b", line) and not THE_BROKERS.search(line)]
    assert unclear == []


def test_the_project_has_one_name() -> None:
    """It is rocketmq-broker: not a kit, and not called by its subject. Apache's conformance kit is another thing."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *PAGES, ROOT / "mkdocs.yml"]
    pages.remove(ROOT / "CHANGELOG.md")
    other_name = re.compile(
        r"\b(this|the|teaching) kit\b|^# Transactional messages|site_name: (?!rocketmq-broker$)", re.IGNORECASE | re.M
    )
    assert {str(page.relative_to(ROOT)) for page in pages if other_name.search(page.read_text())} == set()
