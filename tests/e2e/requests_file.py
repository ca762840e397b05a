"""Sends the requests of docs/requests.http like the extension REST Client, with variables and values of earlier responses."""

import re
from collections.abc import Iterator, Mapping
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import httpx

FILE = Path(__file__).parents[2] / "docs" / "requests.http"


class WrittenRequest(NamedTuple):
    """One request of the file, before variables are replaced."""

    title: str
    name: str | None
    status: int
    method: str
    url: str
    headers: dict[str, str]
    body: str


def written_requests() -> Iterator[WrittenRequest]:
    for block in re.split(r"^### ", FILE.read_text(), flags=re.MULTILINE)[1:]:
        head, _, body = block.strip().partition("\n\n")
        title, *lines = head.splitlines()
        comments = "\n".join(line for line in lines if line.startswith("#"))
        (status,) = re.findall(r"^# Answers (\d+)$", comments, re.MULTILINE)
        name = re.search(r"^# @name (\w+)$", comments, re.MULTILINE)
        request, *headers = [line for line in lines if not line.startswith("#")]
        method, url = request.split(" ")
        named = dict(line.split(": ", 1) for line in headers)
        yield WrittenRequest(title, name[1] if name else None, int(status), method, url, named, body)


class Player:
    """A client that sends requests of the file to services at these addresses."""

    def __init__(self, addresses: Mapping[str, str]) -> None:
        written = dict(re.findall(r"^@(\w+) = (\S+)$", FILE.read_text(), re.MULTILINE))
        assert addresses.keys() <= written.keys()
        self._variables = {**written, **addresses}
        self._bodies: dict[str, Any] = {}

    def play(self, request: WrittenRequest) -> httpx.Response:
        headers = {name: self._filled(value) for name, value in request.headers.items()}
        answer = httpx.request(request.method, self._filled(request.url), headers=headers, content=request.body, timeout=60)
        if request.name is not None:
            self._bodies[request.name] = answer.json()
        return answer

    def _filled(self, text: str) -> str:
        return re.sub(r"\{\{(.+?)\}\}", lambda variable: str(self._value(variable[1])), text)

    def _value(self, variable: str) -> object:
        name, _, path = variable.partition(".response.body.$.")
        return reduce(lambda body, key: body[key], path.split("."), self._bodies[name]) if path else self._variables[name]
