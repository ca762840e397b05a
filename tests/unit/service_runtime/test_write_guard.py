from pathlib import Path
from uuid import uuid4

import pytest
from flask import Flask
from pydantic import ValidationError
from pydantic_settings import SettingsConfigDict

from rocketmq_broker.known_hosts import KnownHosts
from service_runtime.http.api_document import ApiDescription
from service_runtime.http.application import create_application
from service_runtime.http.health import LivenessResponse
from service_runtime.http.write_guard import WriteGuard, WritingSettings
from service_runtime.settings.common import names_beginning_with


class Settings(WritingSettings):
    model_config = SettingsConfigDict(alias_generator=names_beginning_with("SHOP"))


def an_app(guard: WriteGuard) -> Flask:
    app = create_application(
        "shop",
        [],
        hosts=KnownHosts(),
        threads=8,
        problem_of={},
        max_body_bytes=100,
        description=ApiDescription("Shop", "1", {}, health=LivenessResponse),
        guard=guard,
        new_uuid=uuid4,
    )
    app.add_url_rule("/thing", "read", lambda: "read")
    app.add_url_rule("/thing", "write", lambda: "written", methods=["PUT"])
    return app


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer wrong", "bearer secret", "secret", "Basic secret", "Bearer sécret"]
)
def test_nothing_is_changed_without_the_key(header: str | None) -> None:
    client = an_app(WriteGuard(api_key="secret")).test_client()
    headers = {} if header is None else {"Authorization": header}
    answer = client.put("/thing", headers=headers)
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert answer.content_type == "application/problem+json"
    assert answer.json["type"] == "/docs#api-key-missing"
    assert client.get("/thing").text == "read"


def test_the_key_lets_in_and_without_one_nobody_is_asked() -> None:
    guarded = an_app(WriteGuard(api_key="secret")).test_client()
    assert guarded.put("/thing", headers={"Authorization": "Bearer secret"}).text == "written"
    assert an_app(WriteGuard()).test_client().put("/thing").text == "written"


def test_a_key_may_be_any_text_which_clients_send_in_utf_8() -> None:
    client = an_app(WriteGuard(api_key="sécret €")).test_client()
    assert client.put("/thing", headers={"Authorization": "Bearer sécret €".encode().decode("latin-1")}).text == "written"
    assert client.put("/thing", headers={"Authorization": "Bearer s?cret ?"}).status_code == 401


def test_a_caller_that_changes_too_much_is_told_when_to_come_again_and_others_are_not_held_up() -> None:
    client = an_app(WriteGuard(rate="2/hour")).test_client()
    answers = [client.put("/thing") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[2].content_type == "application/problem+json"
    assert 0 < int(answers[2].headers["Retry-After"]) <= 3600
    assert client.put("/thing", environ_base={"REMOTE_ADDR": "10.0.0.9"}).status_code == 200
    assert [client.get("/thing").status_code for _ in range(5)] == [200] * 5


def test_the_key_is_read_from_a_file_and_shown_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text("secret\n")
    monkeypatch.setenv("SHOP_API_KEY_FILE", str(tmp_path / "key"))
    settings = Settings(_cli_parse_args=False)
    assert settings.write_guard == WriteGuard("secret")
    assert "secret" not in repr(settings)


def test_a_key_that_cannot_be_read_is_an_error_that_names_the_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_API_KEY_FILE", str(tmp_path / "none"))
    with pytest.raises(ValidationError, match="SHOP_API_KEY_FILE"):
        Settings(_cli_parse_args=False)


@pytest.mark.parametrize("rate", ["often", "10", "10/fortnight", "-1/second"])
def test_a_rate_that_is_none_is_an_error_that_says_what_is_expected(rate: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_WRITE_RATE", rate)
    with pytest.raises(ValidationError, match="100/minute"):
        Settings(_cli_parse_args=False)
