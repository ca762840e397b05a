"""Limits who may change data over HTTP, and how often: an API key, and a rate for each caller. Both are off by default."""

import hmac
from dataclasses import dataclass
from typing import Annotated, Final, Self

import limits
from flask import Flask, Response, request
from pydantic import AfterValidator, Field, PrivateAttr, SecretStr, model_validator

from service_runtime.http.problems import problem_response
from service_runtime.settings.common import NamedSettings
from service_runtime.settings.secret_settings import secret_of

_SAFE_METHODS: Final = ("GET", "HEAD", "OPTIONS")


def _rate(text: str) -> str:
    if text:
        try:
            limits.parse_many(text)
        except ValueError:
            raise ValueError("a rate is expected, such as 100/minute or 10/second;1000/hour") from None
    return text


class WritingSettings(NamedSettings):
    """Who may change something over HTTP, and how often."""

    api_key_file: str = Field(
        "", description="file that holds the key which requests that change something must bring; without it none is asked for"
    )
    write_rate: Annotated[str, AfterValidator(_rate)] = Field(
        "",
        description="how often one caller may change something, 100/minute or 10/second;1000/hour; no limit unless given",
    )
    _api_key: SecretStr = PrivateAttr(SecretStr(""))

    @model_validator(mode="after")
    def _read_api_key(self) -> Self:
        self._api_key = secret_of(self.api_key_file, str(type(self).model_fields["api_key_file"].validation_alias))
        return self

    @property
    def write_guard(self) -> "WriteGuard":
        """The conditions for requests that change data."""
        return WriteGuard(self._api_key.get_secret_value(), self.write_rate)


@dataclass(frozen=True, slots=True)
class WriteGuard:
    """The conditions for requests that change data. An empty key or rate sets none."""

    api_key: str = ""
    rate: str = ""

    def lets_in(self, authorization: str) -> bool:
        """Returns whether a request with this header may change data."""
        return not self.api_key or brings_key(authorization, self.api_key)


def brings_key(authorization: str, key: str) -> bool:
    """Returns whether this header holds the key. The comparison's time says nothing about the key.

    `authorization` is WSGI's: each byte of the header a character. The key is text, which clients send in UTF-8.
    """
    return hmac.compare_digest(authorization.encode("latin-1", "replace"), f"Bearer {key}".encode())


def guard_writes(app: Flask, guard: WriteGuard) -> None:
    """Answers 401 to changing requests without the key, and 429 to callers above the rate.

    A caller is an address. Each process counts for itself, since its start.
    """

    def turn_away() -> Response | None:
        if request.method in _SAFE_METHODS or guard.lets_in(request.headers.get("Authorization", "")):
            return None
        response = problem_response(401, "API key missing", "this needs the service's key, as `Authorization: Bearer KEY`")
        response.headers["WWW-Authenticate"] = "Bearer"
        return response

    if guard.api_key:
        app.before_request(turn_away)
    if guard.rate:
        _limit_rate(app, guard.rate)


def _limit_rate(app: Flask, rate: str) -> None:
    # Imported here: it takes 0.2 s, which a service without a rate saves at its start.
    from flask_limiter import Limiter
    from flask_limiter.util import get_remote_address

    Limiter(
        get_remote_address,
        app=app,
        application_limits=[rate],
        application_limits_exempt_when=lambda: request.method in _SAFE_METHODS,
        headers_enabled=True,
        storage_uri="memory://",
        strategy="moving-window",
    )
