"""Tests of the access to the console and to its forms."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from rocketmq_broker.admin.console import ConsoleSettings, create_console
from rocketmq_broker.admin.console.guard import MAX_BODY_BYTES
from rocketmq_broker.admin.console.login import PasswordCheck, path_within
from rocketmq_broker.admin.session import Target
from rocketmq_broker.world import World
from tests.unit.admin.console.visitor import PAGE_OF_CONSOLE, Visitor

NOBODY = Target(broker_addr="127.0.0.1:1")
PASSWORD = "correct horse"


@pytest.fixture
def client() -> Iterator[TestClient]:
    """Yields a client of a console without a password. The console's broker does not exist."""
    with TestClient(create_console(ConsoleSettings(), NOBODY), base_url=PAGE_OF_CONSOLE) as client:
        yield client


@pytest.fixture
def guarded() -> Iterator[Visitor]:
    """Yields a visitor of a console that requires a password."""
    app = create_console(ConsoleSettings("0.0.0.0", 8088, PASSWORD), NOBODY)
    with TestClient(app, base_url="http://console.example:8088") as client:
        yield Visitor(client)


@pytest.mark.parametrize("path", ["/", "/messages", "/static/console.js", "/nowhere"])
def test_every_answer_forbids_scripts_of_others_and_frames(path: str, client: TestClient) -> None:
    headers = client.get(path).headers
    assert "script-src 'self'" in headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert "unsafe-inline" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_no_page_has_a_script_or_style_of_its_own(client: TestClient) -> None:
    html = client.get("/messages").text
    assert "<script>" not in html
    assert " style=" not in html
    assert " onclick=" not in html


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8088", "evil.example:8088", ""])
def test_a_name_that_leads_to_the_loopback_address_is_refused(host: str, client: TestClient) -> None:
    assert client.get("/", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1:8088", "localhost:8088", "[::1]:8088", "localhost"])
def test_the_names_of_the_loopback_address_are_answered(host: str, client: TestClient) -> None:
    assert client.get("/messages", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}],
)
def test_a_form_of_another_site_is_refused(headers: dict[str, str], client: TestClient) -> None:
    assert client.post("/discarded/resume", data={"message": "x"}, headers=headers).status_code == 403


def test_a_form_without_the_token_of_its_page_is_refused(client: TestClient) -> None:
    client.get("/messages")
    for token in ({}, {"csrf": ""}, {"csrf": "0" * 32}):
        assert client.post("/discarded/resume", data={"message": "x", **token}).status_code == 403


def test_a_form_is_never_sent_by_a_link(client: TestClient) -> None:
    assert client.get("/discarded/resume?message=x").status_code == 405


def test_a_form_that_is_too_long_is_refused(client: TestClient) -> None:
    assert client.post("/discarded/resume", data={"message": "x" * (MAX_BODY_BYTES + 1)}).status_code == 413


def test_without_the_password_every_page_leads_to_the_login_page(guarded: Visitor) -> None:
    for path in ("/", "/pending", "/transaction?word=a%26b"):
        assert "Console password" in guarded.sees(path)
    assert guarded.client.get("/pending/live").status_code == 401
    assert guarded.client.post("/discarded/resume", data={"message": "x"}).status_code == 401
    assert guarded.client.get("/static/console.css").status_code == 200


def test_the_password_lets_in_and_leads_to_the_page_that_was_asked_for(guarded: Visitor) -> None:
    seen = guarded.posts("/messages?word=", "/login", password=PASSWORD)
    assert seen.startswith("Messages")
    assert guarded.sees("/messages").startswith("Messages")


def test_a_wrong_password_is_refused_and_five_of_them_shut_the_door_for_a_minute(guarded: Visitor) -> None:
    for _ in range(5):
        assert "Wrong password." in guarded.posts("/login", "/login", 403, password="guess")
    assert "Wait a minute" in guarded.posts("/login", "/login", 429, password=PASSWORD)


GUESSER = "192.0.2.66"


def test_the_door_opens_again_after_a_minute_and_then_after_longer_and_longer() -> None:
    now_s = 0.0
    check = PasswordCheck(PASSWORD, World(steady_ns=lambda: int(now_s * 1e9)))
    assert not any(check.accepts("guess", GUESSER) for _ in range(4))
    for block_s in (60, 120, 240, 480, 960, 1920, 3600, 3600):
        assert check.blocked_for_s(GUESSER) == 0
        assert not check.accepts("guess", GUESSER)
        assert check.blocked_for_s(GUESSER) == block_s
        now_s += block_s
    assert check.accepts(PASSWORD, GUESSER)
    assert not check.accepts("guess", GUESSER)
    assert check.blocked_for_s(GUESSER) == 0, "the right password makes up for the wrong ones"


def test_the_wrong_passwords_of_one_address_shut_nobody_else_out() -> None:
    check = PasswordCheck(PASSWORD, World(steady_ns=lambda: 0))
    for number in range(100):
        check.accepts("guess", f"2001:db8:0:1::{number:x}")
        check.accepts("guess", GUESSER)
    assert check.blocked_for_s(GUESSER) > 0
    assert check.blocked_for_s("2001:db8:0:1::ffff") > 0, "a network of IPv6 is one address"
    assert check.blocked_for_s("192.0.2.7") == check.blocked_for_s("2001:db8:0:2::1") == 0
    assert check.accepts(PASSWORD, "192.0.2.7")


def test_addresses_that_guess_are_remembered_up_to_a_bound() -> None:
    check = PasswordCheck(PASSWORD, World(steady_ns=lambda: 0))
    for number in range(20_000):
        check.accepts("guess", f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    assert len(check._guesses) == 10_000


def test_the_cookie_is_kept_from_scripts_and_from_other_sites(guarded: Visitor) -> None:
    cookie = guarded.client.get("/login").headers["Set-Cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


@pytest.mark.parametrize(
    ("path", "within"),
    [
        ("/pending?broker=a", "/pending?broker=a"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example", "/"),
        ("/a\r\nSet-Cookie: x", "/"),
        ("", "/"),
    ],
)
def test_after_the_login_nobody_is_led_to_another_site(path: str, within: str) -> None:
    assert path_within(path) == within
