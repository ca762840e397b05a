"""Updates the code blocks in the chapters: `python -m tutorials.pages`.

A block under `<!-- FILE -->` contains the text of that file. A block under `<!-- FILE NAME -->` contains the text of the class or
function NAME in that file. A ```diff block contains the text of a patch file. A test fails if a block differs from its file.
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
    """Raised if a page refers to a file that does not exist, or to a class or function that the file does not define."""


def chapters() -> list[Path]:
    """Returns the pages of all chapters. Skips folders that are Python packages, because they are programs or other courses."""
    return sorted(page for page in FOLDER.glob("*/README.md") if not (page.parent / "__init__.py").exists())


def with_code(page: Path) -> str:
    """Returns the text of the page with updated blocks. Raises PageError."""

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
