"""docs/troubleshooting.md: each message that it explains still stands in the code, and each link leads somewhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.parsed import parsed

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
PACKAGES = ("broker", "order_service", "credit_service", "service_runtime")
ANYTHING = "…"
DIRECTIVE = re.compile(r"%(?:\.\d+)?[sdrgof]")
MESSAGES = re.findall(r"^\| `(.+?)` \|", PAGE, re.MULTILINE)


@cache
def texts() -> frozenset[str]:
    """All strings in the code, with … for what is put into them."""
    return frozenset(text for package in PACKAGES for path in (ROOT / package).rglob("*.py") for text in strings(parsed(path)))


def strings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield DIRECTIVE.sub(ANYTHING, node.value)
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else ANYTHING for part in node.values)


def stands_in_the_code(message: str) -> bool:
    pattern = re.compile(".*".join(map(re.escape, message.split(ANYTHING))), re.DOTALL)
    return any(pattern.search(text) for text in texts())


def test_the_page_has_messages() -> None:
    assert len(MESSAGES) > 50
    assert len(MESSAGES) == len(set(MESSAGES))
    assert not stands_in_the_code("no broker has the topic …")


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_that_is_explained_stands_in_the_code(message: str) -> None:
    assert stands_in_the_code(message), f"the code has no such message any more: {message}"


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)]+)\)", PAGE))))
def test_each_link_leads_to_a_heading(link: str) -> None:
    page, _, anchor = link.partition("#")
    headings = re.findall(r"^#+ (.+)$", (ROOT / "docs" / page).read_text(), re.MULTILINE)
    assert anchor in {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
