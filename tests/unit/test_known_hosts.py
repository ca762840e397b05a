"""Tests which requests are accepted, based only on their headers."""

import pytest

from rocketmq_broker.known_hosts import KnownHosts

LOOPBACK = KnownHosts.of("127.0.0.1", "")


def status(
    hosts: KnownHosts, host: str | None, *, origin: str | None = None, fetch_site: str | None = None, method: str = "POST"
) -> int:
    refusal = hosts.refusal(method, host, origin, fetch_site)
    return 200 if refusal is None else refusal.status


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "localhost:8080",
        "LOCALHOST:8080",
        "localhost.:8080",
        "shop.localhost",
        "127.0.0.1",
        "127.0.0.1:49153",
        "[::1]:8080",
    ],
)
def test_loopback_is_known_by_any_of_its_names_on_any_port(host: str) -> None:
    """The port may differ, because a container's port is mapped to a different port."""
    assert status(LOOPBACK, host) == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8080",
        "localhost.evil.example",
        "notlocalhost",
        "127.0.0.1.evil.example",
        "192.0.2.7",
        "[2001:db8::7]:80",
    ],
)
def test_a_name_that_is_not_ours_is_misdirected(host: str) -> None:
    """Otherwise a page whose name is rebound to 127.0.0.1 could send requests and read the responses."""
    assert status(LOOPBACK, host) == status(LOOPBACK, host, method="GET") == 421


@pytest.mark.parametrize(
    "host", ["", ":8080", "a b", "localhost:port", "user@localhost", "localhost/x", "localhost,evil", "[::1", "\x00"]
)
def test_what_is_no_host_is_misdirected(host: str) -> None:
    assert status(LOOPBACK, host) == 421


def test_a_request_that_names_no_host_is_from_no_browser() -> None:
    assert status(LOOPBACK, None) == 200


@pytest.mark.parametrize("host", ["192.0.2.7:8080", "[2001:db8::7]", "172.17.0.2", "localhost", "127.0.0.1:8080"])
@pytest.mark.parametrize("bound", ["0.0.0.0", "::", "192.0.2.7", "shop.example"])
def test_who_listens_beyond_loopback_is_found_by_address(bound: str, host: str) -> None:
    """A container cannot find out the address to which its port is mapped."""
    assert status(KnownHosts.of(bound, ""), host) == 200


def test_who_listens_beyond_loopback_still_has_only_names_it_was_given() -> None:
    assert status(KnownHosts.of("0.0.0.0", ""), "order-service:8080") == 421
    assert status(KnownHosts.of("0.0.0.0", "order-service, Shop.Example"), "order-service:8080") == 200
    assert status(KnownHosts.of("0.0.0.0", "order-service, Shop.Example"), "shop.example") == 200
    assert status(KnownHosts.of("shop.example", ""), "shop.example:8080") == 200


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "https://evil.example:8080",
        "null",
        "http://localhost:3000",
        "http://127.0.0.1:8080",
        "file://localhost:8080",
        "http://localhost:8080.evil.example",
        "",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_page_of_another_origin_is_refused(origin: str, method: str) -> None:
    assert status(LOOPBACK, "localhost:8080", origin=origin, method=method) == 403


@pytest.mark.parametrize("origin", ["http://localhost:8080", "https://localhost:8080"])
def test_a_page_of_our_own_origin_is_answered(origin: str) -> None:
    assert status(LOOPBACK, "localhost:8080", origin=origin, fetch_site="same-origin") == 200


def test_behind_a_proxy_that_changes_host_the_names_given_are_our_own_origin() -> None:
    hosts = KnownHosts.of("0.0.0.0", "shop.example")
    assert status(hosts, "10.0.0.4:8080", origin="https://shop.example") == 200
    assert status(hosts, "10.0.0.4:8080", origin="https://evil.example") == 403
    assert status(hosts, "10.0.0.4:8080", origin="http://10.0.0.4:3000") == 403


@pytest.mark.parametrize("fetch_site", ["cross-site", "same-site"])
def test_another_site_s_page_may_link_to_us_and_change_nothing(fetch_site: str) -> None:
    assert status(LOOPBACK, "localhost", fetch_site=fetch_site, method="GET") == 200
    assert status(LOOPBACK, "localhost", fetch_site=fetch_site, method="POST") == 403


@pytest.mark.parametrize("fetch_site", ["none", "same-origin"])
def test_who_typed_our_address_may_use_it(fetch_site: str) -> None:
    assert status(LOOPBACK, "localhost", fetch_site=fetch_site) == 200


def test_a_refusal_says_what_to_do() -> None:
    refusal = LOOPBACK.refusal("GET", "shop.example", None, None)
    assert refusal is not None
    assert "unknown host name 'shop.example'" in refusal.detail
    assert "use a configured name of this server" in refusal.detail
