"""Compares signatures with those of Apache's own code (AclSignerTest, AclClientRPCHook, Go's interceptor)."""

import pytest

from rocketmq_broker.acl import IllegalCredentials, SessionCredentials
from rocketmq_broker.acl.signature import is_signed, signature


def test_it_is_hmac_sha1_in_base64_as_the_go_client_computes_it() -> None:
    assert signature({}, b"Hello RocketMQ Client ACL Feature", "adiaushdiaushd") == "tAb/54Rwwcq+pbH8Loi7FWX4QSQ="


def test_the_values_are_signed_in_the_order_of_their_names_and_then_the_body() -> None:
    fields = {"topic": "b", "a": "1", "Signature": "ignored", "AccessKey": "x"}
    assert signature(fields, b"body", "secret") == signature({}, b"x1bbody", "secret")


def test_signed_fields_are_found_to_be_signed() -> None:
    fields = SessionCredentials("orders-key", "a long secret", "token").signed({"b": "T"}, b"body")
    assert fields.keys() == {"b", "AccessKey", "SecurityToken", "Signature"}
    assert is_signed(fields, b"body", "a long secret")


@pytest.mark.parametrize(
    ("field", "value"), [("b", "U"), ("AccessKey", "other"), ("SecurityToken", "other"), ("Signature", "AAAA"), ("z", "new")]
)
def test_a_changed_field_is_not_signed(field: str, value: str) -> None:
    fields = SessionCredentials("orders-key", "a long secret", "token").signed({"b": "T"}, b"body")
    assert not is_signed({**fields, field: value}, b"body", "a long secret")


def test_a_changed_body_another_secret_and_no_signature_are_not_signed() -> None:
    fields = SessionCredentials("orders-key", "a long secret").signed({"b": "T"}, b"body")
    assert not is_signed(fields, b"bodY", "a long secret")
    assert not is_signed(fields, b"body", "a long secreT")
    assert not is_signed({"b": "T", "AccessKey": "orders-key"}, b"body", "a long secret")
    assert not is_signed({**fields, "Signature": "\ud800 é".encode(errors="replace").decode()}, b"body", "a long secret")


@pytest.mark.parametrize("unsigned", [frozenset[str](), frozenset({"_UNIQUE_KEY_QUERY"})])
def test_the_field_that_apaches_peers_disagree_on_may_be_signed_or_not(unsigned: frozenset[str]) -> None:
    fields = {"key": "k", "_UNIQUE_KEY_QUERY": "true", "AccessKey": "orders-key"}
    fields["Signature"] = signature(fields, b"", "a long secret", unsigned=unsigned)
    assert is_signed(fields, b"", "a long secret")


def test_credentials_do_not_print_their_secret() -> None:
    assert "hidden" not in repr(SessionCredentials("orders-key", "hidden secret", "hidden token"))


@pytest.mark.parametrize(("access_key", "secret_key"), [("", "secret"), ("key", "")])
def test_credentials_without_one_of_the_keys_are_refused(access_key: str, secret_key: str) -> None:
    with pytest.raises(IllegalCredentials, match="is empty"):
        SessionCredentials(access_key, secret_key)
