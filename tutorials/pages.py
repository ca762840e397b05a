"""Updates code blocks in chapters: a block under `<!-- FILE -->` or `<!-- FILE NAME -->` is this file or its part NAME.

A ```diff block shows a whole patch. `python -m tutorials.pages` updates these blocks. A test fails if a block differs from its
file.
"""

import ast
import re
from pathlib import Path
from typing import Final

from rocketmq_broker.stop_signals import until_interrupted

FOLDER: Final = Path(__file__).parent
_BLOCK: Final = re.compile(
    r"<!-- (?P<file>\S+\.(?:py|patch))(?: (?P<name>\w+))? -->\n```(?P<language>python|diff)\n.*?```\n", re.DOTALL
)


class PageError(Exception):
    """A page refers to a file, or to a part of it, that does not exist."""


def chapters() -> list[Path]:
    """Returns the pages of all chapters. Folders that are Python packages are programs or other courses."""
    return sorted(page for page in FOLDER.glob("*/README.md") if not (page.parent / "__init__.py").exists())


def with_code(page: Path) -> str:
    """Returns the page's text with updated blocks. Raises PageError."""

    def written(block: re.Match[str]) -> str:
        source, name = page.parent / block["file"], block["name"]
        if not source.is_file():
            raise PageError(f"{page}: no file {block['file']} in its folder")
        head = f"<!-- {block['file']}{f' {name}' if name else ''} -->"
        return f"{head}\n```{block['language']}\n{_part(source, name).strip()}\n```\n"

    return _BLOCK.sub(written, page.read_text())


def _part(source: Path, name: str | None) -> str:
    text = source.read_text()
    if name is None:
        return text
    for node in ast.parse(text).body:
        if getattr(node, "name", None) == name:
            decorators = getattr(node, "decorator_list", [])
            first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
            return "\n".join(text.splitlines()[first - 1 : node.end_lineno])
    raise PageError(f"{source} does not define {name}")


def main() -> None:
    """Updates the blocks of all pages."""
    for page in chapters():
        page.write_text(with_code(page))


if __name__ == "__main__":
    with until_interrupted():
        main()
