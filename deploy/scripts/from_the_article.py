"""Updates the tables of docs/from-the-article.md and its translation: `python -m deploy.scripts.from_the_article`.

docs/from-the-article.toml has a row for each name in Apache's source. Line numbers are looked up by symbol, so that
they stay correct. Tables are below `<!-- rows: STEP -->`, and the line of counts is below `<!-- counts -->`. A test
fails if a page differs from the rows.
"""

import ast
import re
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from rocketmq_broker.stop_signals import until_interrupted

ROOT: Final = Path(__file__).resolve().parents[2]
ROWS: Final = ROOT / "docs" / "from-the-article.toml"
PAGES: Final = (ROOT / "docs" / "from-the-article.md", ROOT / "docs" / "from-the-article.zh.md")
VERDICTS: Final = {"same": "相同", "different": "不同", "not needed": "不需要"}
_TABLE: Final = re.compile(r"(?<=<!-- rows: )(?P<step>\w+) -->\n\n(?:\|.*\n)*")
_COUNTS: Final = re.compile(r"(?<=<!-- counts -->\n\n).*\n")


class ArticlePageError(Exception):
    """Raised if a row names a missing symbol or chapter, or if a page names a step without rows."""


class Row(NamedTuple):
    """A name in Apache's source, and the corresponding symbol of this project."""

    apache: str
    ours: str
    """A symbol as PATH::SYMBOL, or the path of a module."""
    verdict: str
    why: str
    why_zh: str
    test: str
    """A test as PATH::NAME."""
    chapter: str
    """A folder or page below tutorials."""
    declared_in: str
    """Apache's class, or an empty string if `apache` is a class."""


def rows() -> dict[str, list[Row]]:
    """Returns the rows, grouped by step."""
    steps = tomllib.loads(ROWS.read_text())
    return {step: [Row(declared_in=row.pop("class", ""), **row) for row in found] for step, found in steps.items()}


def line_of(place: str) -> int:
    """Returns the line number of PATH::SYMBOL, or 1 for a path without a symbol. Raises ArticlePageError."""
    path, _, symbol = place.partition("::")
    line, body = 1, _statements(path)
    for name in filter(None, symbol.split(".")):
        found = next((node for node in body if name in _names(node)), None)
        if found is None:
            raise ArticlePageError(f"{path} does not define {symbol}")
        line, body = found.lineno, getattr(found, "body", [])
    return line


@cache
def _statements(path: str) -> list[ast.stmt]:
    """Returns the statements of a module. Cached, because many rows may name the same module. Raises ArticlePageError."""
    file = ROOT / path
    if not file.is_file():
        raise ArticlePageError(f"{path} does not exist, but a row names it")
    return ast.parse(file.read_text()).body


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def page_text(page: Path) -> str:
    """Returns the text of a page with updated tables and counts. Raises ArticlePageError."""
    steps, is_chinese = rows(), page.name.endswith(".zh.md")

    def table(found: re.Match[str]) -> str:
        if found["step"] not in steps:
            raise ArticlePageError(f"{page.name}: no row has the step {found['step']}")
        return f"{found['step']} -->\n\n" + "".join(f"{line}\n" for line in _table(steps[found["step"]], is_chinese=is_chinese))

    return _COUNTS.sub(f"{_counts(steps, is_chinese=is_chinese)}\n", _TABLE.sub(table, page.read_text()))


def _counts(steps: dict[str, list[Row]], *, is_chinese: bool) -> str:
    found = Counter(row.verdict for step in steps.values() for row in step)
    words = VERDICTS.values() if is_chinese else VERDICTS
    verdicts = ", ".join(f"{found[verdict]} {word}" for verdict, word in zip(VERDICTS, words, strict=True))
    return f"{found.total()} {'个名字' if is_chinese else 'names'}: {verdicts}."


def _table(found: list[Row], *, is_chinese: bool) -> list[str]:
    head = "| Apache RocketMQ | 本项目 | 结论 | 说明 | 证据 |" if is_chinese else "| Apache RocketMQ | here | | why | shown by |"
    return [head, "| --- | --- | --- | --- | --- |", *(_line(row, is_chinese=is_chinese) for row in found)]


def _line(row: Row, *, is_chinese: bool) -> str:
    declared_in = f" (`{row.declared_in}`)" if row.declared_in else ""
    path, _, symbol = row.ours.partition("::")
    here = _link(f"`{symbol or Path(path).stem}`", row.ours)
    test = _link("测试" if is_chinese else "test", row.test)
    verdict, why = (VERDICTS[row.verdict], row.why_zh) if is_chinese else (row.verdict, row.why)
    chapter = _chapter(row.chapter, is_chinese=is_chinese)
    return f"| `{row.apache}`{declared_in} | {here} | {verdict} | {why} | {test} · {chapter} |"


def _link(text: str, place: str) -> str:
    return f"[{text}](../{place.partition('::')[0]}#L{line_of(place)})"


def _chapter(chapter: str, *, is_chinese: bool) -> str:
    page = ROOT / "tutorials" / chapter
    page = page if page.suffix else page / "README.md"
    translation = page.with_name(f"{page.stem}.zh.md")
    if is_chinese and translation.is_file():
        page = translation
    if not page.is_file():
        raise ArticlePageError(f"the chapter {chapter} does not exist, but a row names it")
    return f"[{page.read_text().splitlines()[0].lstrip('# ')}](../{page.relative_to(ROOT)})"


def main() -> None:
    """Updates both pages. Raises SystemExit with the reason if a row is wrong."""
    try:
        for page in PAGES:
            page.write_text(page_text(page))
    except ArticlePageError as error:
        raise SystemExit(f"from_the_article: {error}") from None


if __name__ == "__main__":
    with until_interrupted():
        main()
