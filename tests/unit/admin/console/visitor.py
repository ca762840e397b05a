"""A browser without scripts: gets pages of the console, and posts the forms that stand in them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape

import httpx
from starlette.testclient import TestClient

PAGE_OF_CONSOLE = "http://127.0.0.1:8088"


class Visitor:
    """Looks at one console."""

    def __init__(self, client: TestClient) -> None:
        self.client = client

    def sees(self, path: str, status: int = 200) -> str:
        """The text of a page, without its markup."""
        return text_of(self.html(path, status))

    def html(self, path: str, status: int = 200) -> str:
        """The page as it is sent."""
        response = self.client.get(path)
        assert response.status_code == status, response.text
        return response.text

    def posts(self, page: str, action: str, status: int = 200, **fields: str) -> str:
        """Fills in the form of the page with that action, and posts it; the text of the page that comes then."""
        return text_of(self.posted(page, action, status, fields).text)

    def posted(self, page: str, action: str, status: int, fields: Mapping[str, str]) -> httpx.Response:
        """The answer to the form."""
        response = self.client.post(action, data={**hidden_fields(self.html(page), action), **fields})
        assert response.status_code == status, response.text
        return response


def hidden_fields(html: str, action: str) -> dict[str, str]:
    """What the first form with that action sends unseen."""
    form = next(form for form in re.findall(r"<form.*?</form>", html, re.DOTALL) if f'action="{action}"' in form)
    fields = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', form)
    return {name: unescape(value) for name, value in fields}


def text_of(html: str) -> str:
    """What a reader of the page sees, on one line."""
    main = html.partition("<main")[2].partition(">")[2] or html
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", main)).split())
