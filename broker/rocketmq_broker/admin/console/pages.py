"""Renders pages from templates, with filters for strings, times and addresses."""

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
from rocketmq_broker.admin.output.durations import duration_text, since_text
from rocketmq_broker.admin.output.shown_bodies import shown_body
from rocketmq_broker.admin.output.times import exact_time_text, time_text
from rocketmq_broker.message.text.printable import printable

TEMPLATES = Path(__file__).parent / "templates"


class Section(NamedTuple):
    """A navigation entry."""

    title: str
    path: str


class Pages:
    """The templates of the console and its extensions. All values are escaped."""

    def __init__(self, sections: Sequence[Section], templates: Sequence[Path] = ()) -> None:
        """`templates` are the template folders of extensions. The console's own templates take precedence."""
        folders = (TEMPLATES, *templates)
        self._words = {language: Words.of(language, folders) for language in LANGUAGES}
        self._environments = {
            language: _environment(folders, words, language, sections) for language, words in self._words.items()
        }

    def page(
        self, request: Request, template: str, *, title: str, status: int = 200, address: URL | None = None, **facts: Any
    ) -> HTMLResponse:
        """Returns a whole page, rendered for `address` or for the address of the request.

        The page also shows the result of the visitor's last action, unless an earlier page has shown it.
        """
        address = address or request.url
        session = request.scope.get("session", {})
        result = session.pop("result", None)
        frame = {"title": title, "path": address.path, "result": result, "csrf": session.get("csrf", "")}
        frame["other_languages"] = in_other_languages(request, address)
        return HTMLResponse(self.part(request, template, **{**frame, **facts}), status)

    def part(self, request: Request, template: str, **facts: Any) -> str:
        """Returns a part of a page in the visitor's language."""
        return self.in_language(language_of(request), template, **facts)

    def translated(self, language: str, sentence: str) -> str:
        """Translates a sentence into a language of LANGUAGES. Returns it unchanged if the catalogues do not contain it."""
        return str(self._words[language].translated(sentence))

    def in_language(self, language: str, template: str, **facts: Any) -> str:
        """Renders a part of a page in a language of LANGUAGES, and returns its HTML."""
        return self._environments[language].get_template(template).render(facts)


def _environment(folders: Sequence[Path], words: Words, language: str, sections: Sequence[Section]) -> Environment:
    """Returns the template environment of a language. The environment escapes all values."""
    environment = Environment(
        loader=TemplatesInWords(ChoiceLoader([FileSystemLoader(folder) for folder in folders]), words),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalized,
    )
    environment.filters.update(
        duration=duration_text,
        since=since_text,
        clock=time_text,
        milliseconds=exact_time_text,
        lines=_lines,
        translated=words.translated,
    )
    environment.globals.update(url=url, sections=tuple(sections), shown_body=shown_body, language=language)
    return environment


def url(path: str, **query: object) -> str:
    """Returns an address within the console. Values that are None are omitted from the query."""
    return str(URL(path).include_query_params(**{name: value for name, value in query.items() if value is not None}))


def _finalized(value: object) -> object:
    """Escapes control and bidirectional characters in strings. Does not change markup."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _lines(text: str) -> Markup:
    """Returns the text with line breaks kept and other unprintable characters escaped."""
    return Markup("\n").join(printable(line) for line in text.splitlines())
