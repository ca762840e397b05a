"""Parsed modules of this checkout, shared by the tests that read the whole tree."""

import ast
from functools import cache
from pathlib import Path


@cache
def parsed(path: Path) -> ast.Module:
    """Returns the syntax tree of the module at `path`. Many tests share the tree, so do not change it. Raises SyntaxError."""
    return ast.parse(path.read_text())
