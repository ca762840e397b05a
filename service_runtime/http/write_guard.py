"""Requires an API key for requests that change data, and limits their rate per caller. Both are off by default."""

import hmac
from dataclasses import dataclass
from typing import Annotated, Final, Self

import limits
from flask import Flask, Response, request
from pydantic import AfterValidator, Field, PrivateAttr, SecretStr, model_validator

from service_runtime.http.problems import problem_response
from service_runtime.settings.common import NamedSettings, secret_of

_SAFE_METHODS: Final = ("GET", "HEAD", "OPTIONS")


def _rate(text: str) -> str:
    if text:
        try:
            limits.parse_many(text)
        except ValueError:
            raise ValueError(f"invalid rate {text!r}: use a form such as 100/minute or 10/second;1000/hour") from None
    return text


class WritingSettings(NamedSettings):
    """The settings of the API key and the rate limit for requests that change data."""

    api_key_file: str = Field(
        "", description="file with the API key that requests which change data must send; default: no key is required"
    )
    write_rate: Annotated[str, AfterValidator(_rate)] = Field(
        "",
        description="rate limit of each caller for requests that change data: 100/minute or 10/second;1000/hour; default: none",
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
    """The conditions for requests that change data. An empty key or rate means no restriction."""

    api_key: str = ""
    rate: str = ""


def brings_key(authorization: str, key: str) -> bool:
    """Returns True if the header contains the key. Compares in constant time.

    `authorization` is WSGI's string, with one character for each byte of the header. Clients send the key in UTF-8.
    """
    return hmac.compare_digest(authorization.encode("latin-1", "replace"), f"Bearer {key}".encode())


def guard_writes(app: Flask, guard: WriteGuard) -> None:
    """Rejects requests that change data: with 401 if the key is missing, with 429 if the caller exceeds the rate.

    A caller is identified by IP address. Each process counts requests separately, from its start.
    """

    def turn_away() -> Response | None:
        if request.method in _SAFE_METHODS or brings_key(request.headers.get("Authorization", ""), guard.api_key):
            return None
        response = problem_response(401, "API key missing", "send the service's API key as `Authorization: Bearer KEY`")
        response.headers["WWW-Authenticate"] = "Bearer"
        return response

    if guard.api_key:
        app.before_request(turn_away)
    if guard.rate:
        # Imported here because the import takes 0.2 s, which a service without a rate limit saves.
        from flask_limiter import Limiter
        from flask_limiter.util import get_remote_address

        Limiter(
            get_remote_address,
            app=app,
            application_limits=[guard.rate],
            application_limits_exempt_when=lambda: request.method in _SAFE_METHODS,
            headers_enabled=True,
            storage_uri="memory://",
            strategy="moving-window",
        )
