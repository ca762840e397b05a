"""A browser without scripts, which gets pages of the console and posts the forms in them."""

import re
from collections.abc import Mapping
from html import unescape

import httpx
from starlette.testclient import TestClient

PAGE_OF_CONSOLE = "http://127.0.0.1:8088"


class Visitor:
    """A visitor to one console."""

    def __init__(self, client: TestClient) -> None:
        self.client = client

    def sees(self, path: str, status: int = 200) -> str:
        """Returns the text of a page, without its markup."""
        return text_of(self.html(path, status))

    def html(self, path: str, status: int = 200) -> str:
        """Returns the HTML of a page."""
        response = self.client.get(path)
        assert response.status_code == status, response.text
        return response.text

    def posts(self, page: str, action: str, status: int = 200, **fields: str) -> str:
        """Fills in and posts the page's form with that action. Returns the text of the resulting page."""
        return text_of(self.posted(page, action, status, fields).text)

    def posted(self, page: str, action: str, status: int, fields: Mapping[str, str]) -> httpx.Response:
        """Posts the page's form with that action. Returns the response."""
        response = self.client.post(action, data={**hidden_fields(self.html(page), action), **fields})
        assert response.status_code == status, response.text
        return response


def hidden_fields(html: str, action: str) -> dict[str, str]:
    """Returns the hidden fields of the first form with that action."""
    form = next(form for form in re.findall(r"<form.*?</form>", html, re.DOTALL) if f'action="{action}"' in form)
    fields = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', form)
    return {name: unescape(value) for name, value in fields}


def text_of(html: str) -> str:
    """Returns the visible text of the page, on one line."""
    main = html.partition("<main")[2].partition(">")[2] or html
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", main)).split())
