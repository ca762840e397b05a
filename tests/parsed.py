"""Modules of this checkout, parsed: tests that read the whole tree share what they parse."""

import ast
from functools import cache
from pathlib import Path


@cache
def parsed(path: Path) -> ast.Module:
    """Returns what the module at `path` says. Many tests get the same tree: change nothing in it. Raises SyntaxError."""
    return ast.parse(path.read_text())
