"""Tests plain_acl.yml: RocketMQ's own file is read, mistakes are reported, and rewriting a file keeps its content."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketmq_broker.acl import Account, AccountMistake
from rocketmq_broker.acl.account import PlainAcl
from rocketmq_broker.acl.permission import Permission
from rocketmq_broker.acl.plain_acl_text import parse_plain_acl, plain_acl_text

EXAMPLE = """
globalWhiteRemoteAddresses:
  - 10.10.103.*
  - 192.168.0.*

accounts:
  - accessKey: RocketMQ
    secretKey: 12345678
    whiteRemoteAddress:
    admin: false
    defaultTopicPerm: DENY
    defaultGroupPerm: SUB
    topicPerms:
      - topicA=DENY
      - topicB=PUB|SUB
      - topicC=SUB
    groupPerms:
      # groups are kept as retry topics
      - groupA=DENY
      - groupB=PUB|SUB

  - accessKey: rocketmq2
    secretKey: 12345678
    whiteRemoteAddress: 192.168.1.*
    admin: true
"""


def test_a_file_in_the_form_of_rocketmqs_own_is_read() -> None:
    acl = parse_plain_acl(EXAMPLE)
    assert acl.global_white_addresses == ("10.10.103.*", "192.168.0.*")
    assert [account.access_key for account in acl.accounts] == ["RocketMQ", "rocketmq2"]
    first, second = acl.accounts
    assert first.secret_key == "12345678"
    assert first.white_remote_address == ""
    assert (first.admin, second.admin) == (False, True)
    assert first.topic_perms == ("topicA=DENY", "topicB=PUB|SUB", "topicC=SUB")
    assert set(first.permissions) == {"topicA", "topicB", "topicC", "%RETRY%groupA", "%RETRY%groupB"}
    assert (second.default_topic_perm, second.default_topic) == ("", Permission.DENY)


@pytest.mark.parametrize("text", ["", "\n", "# nothing yet\n", "accounts:\n", "globalWhiteRemoteAddresses: []\naccounts: []\n"])
def test_a_file_without_accounts_has_none(text: str) -> None:
    assert parse_plain_acl(text) == PlainAcl()


def test_a_scalar_is_taken_as_it_is_written() -> None:
    acl = parse_plain_acl("accounts:\n- accessKey: 01234567\n  secretKey: 1_000_000\n")
    assert (acl.accounts[0].access_key, acl.accounts[0].secret_key) == ("01234567", "1_000_000")


def test_the_version_of_the_file_is_read() -> None:
    acl = parse_plain_acl("dataVersion:\n- counter: 3\n  timestamp: 1700000000000\n")
    assert (acl.counter, acl.timestamp_ms) == (3, 1_700_000_000_000)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("secretKey: 12345678\n    whiteRemoteAddress:\n", "secretKey: 123\n", ["line 7", "account 'RocketMQ'", "secretKey"]),
        ("accessKey: rocketmq2", "accessKey: rocket", ["line 22", "account 'rocket'", "accessKey", "at least 7"]),
        ("accessKey: rocketmq2", "accessKey: RocketMQ", ["line 22", "duplicate account 'RocketMQ'"]),
        ("- accessKey: rocketmq2\n    secretKey", "- secretKey", ["line 22", "an account without accessKey"]),
        ("defaultTopicPerm: DENY", "defaultTopicPerm: NONE", ["line 11", "account 'RocketMQ'", "'NONE'", "PUB|SUB"]),
        ("defaultTopicPerm: DENY", "defaultTopicPerms: DENY", ["line 11", "unknown property defaultTopicPerms"]),
        ("topicC=SUB", "topicC", ["line 16", "account 'RocketMQ'", "topicA=SUB"]),
        ("topicC=SUB", "=SUB", ["line 16"]),
        ("topicC=SUB", "topicC=SUB PUB", ["line 16", "'SUB PUB'"]),
        ("groupB=PUB|SUB", "groupB=ANY", ["line 20", "'ANY'"]),
        ("192.168.1.*", "192.168.1.1-", ["line 24", "account 'rocketmq2'", "'192.168.1.1-'"]),
        ("10.10.103.*", "10.10.*.103", ["line 3", "'10.10.*.103'"]),
        ("admin: true", "admin: maybe", ["line 25", "account 'rocketmq2'", "true or false"]),
        ("admin: true", "admin: [true]", ["line 25", "account 'rocketmq2'"]),
        ("admin: true", "admin: true\n    admin: true", ["line 26", "duplicate property"]),
        ("accounts:", "acounts:", ["unknown property acounts"]),
        ("accounts:", "accounts: one\nother:", ["unknown property other"]),
        ("    topicPerms:", "   topicPerms:", ["line 13"]),
    ],
)
def test_a_mistake_is_named_with_line_and_account_and_without_the_secret(old: str, new: str, words: list[str]) -> None:
    assert old in EXAMPLE
    with pytest.raises(AccountMistake) as caught:
        parse_plain_acl(EXAMPLE.replace(old, new, 1))
    assert [word for word in words if word not in str(caught.value)] == []
    assert "12345678" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["accounts: {", "a: b: c", "\t- x", "accounts: &a [*a]", "- 1", "just text", "accounts:\n- 7\n", "a: \x00"]
)
def test_what_is_no_list_of_accounts_is_refused(text: str) -> None:
    with pytest.raises(AccountMistake):
        parse_plain_acl(text)


def is_usable(key: str) -> bool:
    """Returns whether an account can have this key."""
    try:
        Account(access_key=key, secret_key="a long secret")
    except AccountMistake:
        return False
    return True


shown = st.characters(exclude_categories=["C", "Z"])
texts = st.text(shown, min_size=7, max_size=20) | st.text(st.characters(), min_size=7, max_size=20)
odd_ends = st.sampled_from(
    ["", " ", "\t", "\n", "\x00", "\x1f", "\x85", "\xa0", "\u2003", "\u2028", "\u2029", "\ufeff", "\u200b", "\ud800"]
)
keys = st.builds("{1}{0}{2}".format, texts, odd_ends, odd_ends).filter(is_usable) | st.sampled_from(
    ["a b c d e", "'quoted'", "12345678", "key: value", "- a list", "# no comment", "kéy-ключ-鍵匙"]
)
names = st.from_regex(r"\A[%|a-zA-Z0-9_-]{1,12}\Z")
permissions = st.sampled_from(["DENY", "PUB", "SUB", "PUB|SUB", "SUB|PUB"])
named = st.lists(st.tuples(names, permissions).map("=".join), max_size=3, unique=True).map(tuple)
accounts = st.builds(
    Account,
    access_key=keys,
    secret_key=keys,
    white_remote_address=st.sampled_from(["", "*", "10.0.0.{1,2}", "2001:db8::*"]),
    admin=st.booleans(),
    default_topic_perm=permissions,
    default_group_perm=permissions,
    topic_perms=named,
    group_perms=named,
    auditor=st.booleans(),
)


@given(st.lists(accounts, max_size=4, unique_by=lambda account: account.access_key), st.integers(0, 2**40))
def test_a_file_written_again_has_the_same_accounts(some: list[Account], counter: int) -> None:
    acl = PlainAcl(global_white_addresses=("10.0.0.*",), accounts=tuple(some), counter=counter, timestamp_ms=5)
    assert parse_plain_acl(plain_acl_text(acl)) == acl


@pytest.mark.parametrize(
    "odd", [" ", "\t", "\n", "\r", "\x00", "\x1c", "\x85", "\xa0", "\u2003", "\u2028", "\u2029", "\ufeff", "\u200b", "\ud800"]
)
@pytest.mark.parametrize("shape", ["orders-key{}", "{}orders-key"])
@pytest.mark.parametrize("name", ["access_key", "secret_key"])
def test_a_key_that_the_file_could_not_give_back_makes_no_account(odd: str, shape: str, name: str) -> None:
    keys = {"access_key": "orders-key", "secret_key": "a long secret", name: shape.format(odd)}
    with pytest.raises(
        AccountMistake, match=r"(accessKey|secretKey) must not begin or end with a space, or contain unprintable characters"
    ):
        Account(**keys)


def test_an_account_that_only_looks_is_kept_and_apaches_name_for_admins_stays() -> None:
    acl = PlainAcl(accounts=(Account(access_key="auditor-key", secret_key="a long secret", auditor=True),))
    text = plain_acl_text(acl)
    assert "auditor: true" in text
    assert "admin: false" in text
    assert parse_plain_acl(text) == acl
    assert "auditor" not in plain_acl_text(PlainAcl(accounts=(Account(access_key="orders-key", secret_key="a long secret"),)))
