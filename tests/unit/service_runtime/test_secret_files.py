"""Tests passwords that are read from files and put into URLs."""

from pathlib import Path

import pytest
from sqlalchemy import make_url

from service_runtime.settings.secret_files import SecretUnusable, read_secret, url_with_password

DIFFICULT = "p@s:s/w%o#r?d &+='\"\\$é"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text(f"{DIFFICULT}\n")
    return path


@pytest.mark.parametrize(
    ("url", "user"),
    [
        ("postgresql+psycopg://orders@db:5432/orders?sslmode=disable", "orders"),
        ("redis://redis:6379/0", ""),
        ("redis://worker@[::1]:6379/0", "worker"),
    ],
)
def test_any_password_goes_into_the_url_and_comes_out_again(url: str, user: str, secret: Path) -> None:
    complete, plain = make_url(url_with_password(url, secret)), make_url(url)
    assert complete.password == DIFFICULT
    assert (complete.username or "") == user
    parts = ("host", "port", "database", "query")
    assert [getattr(complete, part) for part in parts] == [getattr(plain, part) for part in parts]


def test_without_a_file_the_url_stays_as_it_is() -> None:
    assert url_with_password("postgresql+psycopg://orders:x@db/orders", None) == "postgresql+psycopg://orders:x@db/orders"
    assert url_with_password("sqlite:///data/orders.db", "") == "sqlite:///data/orders.db"


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("sqlite:///data/orders.db", "has no host"),
        ("nonsense", "has no host"),
        ("postgresql+psycopg://orders:another@db/orders", "already contains a password"),
        ("postgresql+psycopg://orders@[/orders", "invalid URL"),
    ],
)
def test_a_url_without_a_place_for_the_password_is_refused(url: str, sentence: str, secret: Path) -> None:
    with pytest.raises(SecretUnusable, match=sentence) as refused:
        url_with_password(url, secret)
    assert DIFFICULT not in str(refused.value)
    assert "another" not in str(refused.value)


@pytest.mark.parametrize("content", [b"secret", b"secret\n", b"secret\r\n"])
def test_the_line_end_is_no_part_of_a_secret(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(content)
    assert read_secret(tmp_path / "secret") == "secret"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"\xff", "is not UTF-8 text"),
        (b"a\nb", "must contain one line"),
        (b"x" * 5000, "must contain one line"),
    ],
)
def test_a_file_that_holds_no_password_is_refused(content: bytes, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(content)
    with pytest.raises(SecretUnusable, match=sentence):
        read_secret(tmp_path / "secret")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SecretUnusable, match=r"cannot read .*absent: No such file or directory"):
        read_secret(tmp_path / "absent")
    with pytest.raises(SecretUnusable, match=r"cannot read .*: Is a directory"):
        read_secret(tmp_path)


def test_a_path_that_is_no_utf_8_is_named_with_its_bytes_escaped() -> None:
    with pytest.raises(SecretUnusable, match=r"^cannot read /nowhere/.*udc80: No such file or directory$") as refused:
        read_secret("/nowhere/\udc80")
    assert str(refused.value).encode()
