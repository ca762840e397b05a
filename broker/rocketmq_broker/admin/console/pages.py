"""Renders facts as HTML: templates, the frame around each page, and the formats of texts, times and addresses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.datastructures import URL
from starlette.requests import Request
from starlette.responses import HTMLResponse

from rocketmq_broker.admin.console.wording.language_switch import in_other_languages, language_of
from rocketmq_broker.admin.console.wording.words import LANGUAGES, TemplatesInWords, Words
from rocketmq_broker.admin.telling.durations import duration_text, since_text
from rocketmq_broker.admin.telling.printing import time_text
from rocketmq_broker.admin.telling.shown_bodies import shown_body
from rocketmq_broker.message.text.printable import printable

TEMPLATES = Path(__file__).parent / "templates"


class Section(NamedTuple):
    """An entry of the navigation."""

    title: str
    path: str


class Pages:
    """The templates of the console and its extensions, which escape all foreign text."""

    def __init__(self, sections: Sequence[Section], templates: Sequence[Path] = ()) -> None:
        """`templates` are folders of extensions; the console's own templates have precedence."""
        folders = (TEMPLATES, *templates)
        self._environments = {
            language: _environment(folders, Words.of(language, folders), language, sections) for language in LANGUAGES
        }

    def page(
        self, request: Request, template: str, *, title: str, status: int = 200, address: URL | None = None, **facts: Any
    ) -> HTMLResponse:
        """Renders a whole page, that of the request unless there is an `address`. It shows the result of the last form once."""
        address = address or request.url
        session = request.scope.get("session", {})
        said = session.pop("said", None)
        frame = {"title": title, "path": address.path, "said": said, "csrf": session.get("csrf", "")}
        frame["other_languages"] = in_other_languages(request, address)
        return HTMLResponse(self.part(request, template, **{**frame, **facts}), status)

    def part(self, request: Request, template: str, **facts: Any) -> str:
        """Renders a part of a page, in the visitor's language."""
        return self._environments[language_of(request)].get_template(template).render(facts)


def _environment(folders: Sequence[Path], words: Words, language: str, sections: Sequence[Section]) -> Environment:
    """Returns the templates in a language, which escape all foreign text."""
    environment = Environment(
        loader=TemplatesInWords(ChoiceLoader([FileSystemLoader(folder) for folder in folders]), words),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalized,
    )
    environment.filters.update(
        duration=duration_text, since=since_text, clock=clock_text, milliseconds=milliseconds_text, lines=_lines, told=words.told
    )
    environment.globals.update(url=url, sections=tuple(sections), shown_body=shown_body, language=language)
    return environment


def url(path: str, **query: object) -> str:
    """Returns an address within the console. The query omits values that are None."""
    return str(URL(path).include_query_params(**{name: value for name, value in query.items() if value is not None}))


def clock_text(ms: int | None) -> str:
    """Formats a time to the second, in local time."""
    return time_text(ms)


def milliseconds_text(ms: int | None) -> str:
    """Formats a time to the millisecond, in local time."""
    return "" if ms is None else f"{time_text(ms)}.{ms % 1000:03d}"


def _finalized(value: object) -> object:
    """Makes control characters visible, and those that turn the direction of writing. Leaves markup of templates alone."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _lines(text: str) -> Markup:
    """Returns the text with its line breaks, each line made printable."""
    return Markup("\n").join(printable(line) for line in text.splitlines())
