"""Renders the chapters of the tutorials as pages of the console, from their Markdown."""

import posixpath
import re
from pathlib import Path
from typing import Final, NamedTuple

from markdown_it import MarkdownIt  # a dependency of rich, which the broker's command lines need
from markdown_it.token import Token
from markupsafe import Markup

from rocketmq_broker.admin.console import Visit, url
from rocketmq_broker.admin.errors import Refused

TUTORIALS: Final = Path(__file__).resolve().parents[2] / "tutorials"
FIRST: Final = ("see-it-happen", "lose-a-commit", "ways-to-lose-money")
"""The chapters on the start screen."""
_NAME: Final = re.compile(r"[a-z0-9-]{1,60}")
_PAGES: Final = {"zh": "README.zh.md"}
_PAGE: Final = "README.md"


class Chapter(NamedTuple):
    """A chapter of the tutorials."""

    name: str
    title: str
    title_zh: str


class ChapterFacts(NamedTuple):
    """The page of a chapter in both languages, as HTML. HTML in the Markdown is escaped."""

    name: str
    english: Markup
    chinese: Markup


def first_chapters() -> list[Chapter]:
    """Returns the first chapters; empty if the tutorials are not installed, as in a container image."""
    return [
        Chapter(name, _title(_text(name, _PAGE)), _title(_text(name, _PAGES["zh"])))
        for name in FIRST
        if (TUTORIALS / name / _PAGE).exists()
    ]


async def find_chapter(visit: Visit) -> ChapterFacts:
    """Returns the chapter that the query parameter `name` selects. Raises Refused if the chapter does not exist."""
    name = visit.word("name")
    if _NAME.fullmatch(name) is None or not (TUTORIALS / name / _PAGE).exists():
        raise Refused(f"unknown chapter {name}")
    return ChapterFacts(name, _drawn(_text(name, _PAGE), name), _drawn(_text(name, _PAGES["zh"]), name))


def chapter_title(visit: Visit) -> str:
    """Returns the English title of the chapter."""
    return _title(_text(visit.word("name"), _PAGE))


def _text(name: str, page: str) -> str:
    path = TUTORIALS / name / page
    return (path if path.exists() else TUTORIALS / name / _PAGE).read_text(encoding="utf-8")


def _title(markdown: str) -> str:
    return markdown.partition("\n")[0].removeprefix("# ")


def _drawn(markdown: str, name: str) -> Markup:
    """Returns the text after the title as HTML. Images and links to other files become plain text."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(markdown.partition("\n")[2])
    for token in tokens:
        token.children = _linked(token.children, name) if token.children else token.children
    return Markup(parser.renderer.render(tokens, parser.options, {}))


def _linked(tokens: list[Token], name: str) -> list[Token]:
    kept: list[Token] = []
    is_open = False
    for token in tokens:
        if token.type == "image":
            kept.append(Token("text", "", 0, content=token.content))
        elif token.type == "link_open":
            address = _address(str(token.attrs.get("href", "")), name)
            is_open = address is not None
            if address is not None:
                token.attrs["href"] = address
                kept.append(token)
        elif token.type != "link_close" or is_open:
            kept.append(token)
    return kept


def _address(target: str, name: str) -> str | None:
    """Returns the URL of a link in the chapter, or None if it leads to another file of the repository."""
    if target.startswith(("https://", "http://")):
        return target
    path, _, _ = target.partition("#")
    folder, page = posixpath.split(posixpath.normpath(posixpath.join(name, path)))
    is_chapter = (
        page in (_PAGE, *_PAGES.values()) and _NAME.fullmatch(folder) is not None and (TUTORIALS / folder / page).exists()
    )
    return url("/chapter", name=folder) if is_chapter and folder != name else None
