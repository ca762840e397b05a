"""Reads the tests of docs/testing.md."""

import re
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).parents[1] / "docs" / "testing.md"
BLOCKS: Final[list[str]] = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
"""The page's blocks. Each is a test file."""


def write_testing_page(folder: Path) -> int:
    """Writes each block into the folder as a test file, except tests of a recipe, which need the checkout and its packages.

    Returns the number of files.
    """
    blocks = [block for block in BLOCKS if "from tutorials.recipes" not in block]
    for number, block in enumerate(blocks):
        (folder / f"test_block_{number}.py").write_text(block, encoding="utf-8")
    return len(blocks)
