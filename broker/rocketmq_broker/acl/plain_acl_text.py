"""plain_acl.yml: the accounts of one file as text, and back (RocketMQ's PlainPermissionManager.load and AclUtils)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import yaml

from rocketmq_broker.acl.account import Account
from rocketmq_broker.acl.errors import AccountMistake
from rocketmq_broker.acl.permission import parse_named_permission, parse_permission
from rocketmq_broker.acl.plain_acl import PlainAcl
from rocketmq_broker.acl.remote_address import parse_remote_addresses

_WHITE_ADDRESSES: Final = "globalWhiteRemoteAddresses"
_ACCOUNTS: Final = "accounts"
_DATA_VERSION: Final = "dataVersion"
_TEXTS: Final = {
    "accessKey": "access_key",
    "secretKey": "secret_key",
    "whiteRemoteAddress": "white_remote_address",
    "defaultTopicPerm": "default_topic_perm",
    "defaultGroupPerm": "default_group_perm",
}
_LISTS: Final = {"topicPerms": "topic_perms", "groupPerms": "group_perms"}
_ADMIN: Final = "admin"
_AUDITOR: Final = "auditor"
_PERMISSIONS: Final = frozenset({"defaultTopicPerm", "defaultGroupPerm"})
_CHECKS: Final[Mapping[str, Callable[[str], object]]] = {
    "whiteRemoteAddress": parse_remote_addresses,
    **dict.fromkeys(_PERMISSIONS, parse_permission),
}
_BOOLEANS: Final = {"true": True, "false": False}
_MAX_BYTES: Final = 4 * 1024 * 1024


class _MistakeAtLine(AccountMistake):
    def __init__(self, line: int, text: str) -> None:
        super().__init__(f"line {line}: {text}")
        self.line = line
        self.text = text


def parse_plain_acl(text: str) -> PlainAcl:
    """Parses the accounts in the text of a file. Raises AccountMistake that names line and account, and no secret."""
    if len(text) > _MAX_BYTES:
        raise AccountMistake(f"it is longer than {_MAX_BYTES} characters")
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise AccountMistake(_words_of(error)) from None
    members = _members(root, "the file") if root is not None and not _is_null(root) else {}
    for name, node in members.items():
        if name not in (_WHITE_ADDRESSES, _ACCOUNTS, _DATA_VERSION):
            raise _at(node, f"{name} is not known here: {_WHITE_ADDRESSES} and {_ACCOUNTS} are")
    accounts = _accounts(members.get(_ACCOUNTS))
    counter, timestamp_ms = _data_version(members.get(_DATA_VERSION))
    addresses = _entries(members.get(_WHITE_ADDRESSES), _WHITE_ADDRESSES)
    return PlainAcl(
        global_white_addresses=tuple(_checked(entry, parse_remote_addresses) for entry in addresses),
        accounts=accounts,
        counter=counter,
        timestamp_ms=timestamp_ms,
    )


def plain_acl_text(acl: PlainAcl) -> str:
    """Returns the text of a file with these accounts. Comments of an earlier text are lost, as with RocketMQ's own tools."""
    document: dict[str, Any] = {
        _WHITE_ADDRESSES: list(acl.global_white_addresses),
        _ACCOUNTS: [_plain_account(account) for account in acl.accounts],
        _DATA_VERSION: [{"counter": acl.counter, "timestamp": acl.timestamp_ms}],
    }
    return yaml.safe_dump(document, sort_keys=False, default_flow_style=False, allow_unicode=True)


def _plain_account(account: Account) -> dict[str, Any]:
    plain: dict[str, Any] = {name: text for name, attribute in _TEXTS.items() if (text := getattr(account, attribute))}
    plain[_ADMIN] = account.admin
    if account.auditor:
        plain[_AUDITOR] = True
    plain |= {name: list(entries) for name, attribute in _LISTS.items() if (entries := getattr(account, attribute))}
    return plain


def _account(entry: yaml.Node) -> Account:
    members = _members(entry, "an account")
    key = members.get("accessKey")
    name = f"account {key.value!r}" if isinstance(key, yaml.ScalarNode) and key.value else "an account without accessKey"
    try:
        values = {"access_key": "", "secret_key": "", **dict(_member(member, node) for member, node in members.items())}
        return Account(**values)
    except _MistakeAtLine as mistake:
        raise _MistakeAtLine(mistake.line, f"{name}: {mistake.text}") from None
    except AccountMistake as error:
        raise _at(entry, f"{name}: {error}") from None


def _member(name: str, node: yaml.Node) -> tuple[str, Any]:
    """Returns the member's name in an Account, and its value. Raises AccountMistake."""
    if name in _TEXTS:
        return _TEXTS[name], "" if _is_null(node) else _checked(node, _CHECKS.get(name, str))
    if name in _LISTS:
        return _LISTS[name], tuple(_checked(item, parse_named_permission) for item in _entries(node, name))
    if name in (_ADMIN, _AUDITOR):
        return name, _boolean(node, name)
    raise _at(node, f"{name} is not known here: {', '.join((*_TEXTS, _ADMIN, _AUDITOR, *_LISTS))} are")


def _checked(node: yaml.Node, parse: Callable[[str], object]) -> str:
    """Returns the text unchanged if it can be parsed. Raises AccountMistake with its line."""
    text = _text(node)
    try:
        parse(text)
    except AccountMistake as error:
        raise _at(node, str(error)) from None
    return text


def _accounts(node: yaml.Node | None) -> tuple[Account, ...]:
    accounts: dict[str, Account] = {}
    for entry in _entries(node, _ACCOUNTS):
        account = _account(entry)
        if account.access_key in accounts:
            raise _at(entry, f"there are two accounts {account.access_key!r}")
        accounts[account.access_key] = account
    return tuple(accounts.values())


def _data_version(node: yaml.Node | None) -> tuple[int, int]:
    """Reads RocketMQ's list of one entry. The entry may be missing in a file that was edited by hand."""
    entries = _entries(node, _DATA_VERSION)
    if not entries:
        return 0, 0
    members = _members(entries[0], _DATA_VERSION)
    texts = [_text(members[name]) if name in members else "0" for name in ("counter", "timestamp")]
    if not all(text.isdecimal() for text in texts):
        raise _at(entries[0], f"{_DATA_VERSION}: numbers are expected")
    return int(texts[0]), int(texts[1])


def _members(node: yaml.Node, what: str) -> dict[str, yaml.Node]:
    if not isinstance(node, yaml.MappingNode):
        raise _at(node, f"{what} has to be names with values: `accessKey: orders`, for example")
    members: dict[str, yaml.Node] = {}
    for key, value in node.value:
        name = _text(key)
        if name in members:
            raise _at(key, f"{name} is there twice")
        members[name] = value
    return members


def _entries(node: yaml.Node | None, name: str) -> list[yaml.Node]:
    if node is None or _is_null(node):
        return []
    if not isinstance(node, yaml.SequenceNode):
        raise _at(node, f"{name} has to be a list: each entry on a line that begins with a hyphen")
    return list(node.value)


def _text(node: yaml.Node) -> str:
    """Returns a scalar exactly as written: 012345 stays 012345."""
    if not isinstance(node, yaml.ScalarNode):
        raise _at(node, "one text is expected, no list and no names with values")
    return str(node.value).strip()


def _boolean(node: yaml.Node, name: str) -> bool:
    value = _BOOLEANS.get(_text(node).lower())
    if value is None:
        raise _at(node, f"{name} has to be true or false")
    return value


def _is_null(node: yaml.Node) -> bool:
    return bool(node.tag == "tag:yaml.org,2002:null")


def _at(node: yaml.Node, text: str) -> _MistakeAtLine:
    return _MistakeAtLine(node.start_mark.line + 1, text)


def _words_of(error: yaml.YAMLError) -> str:
    """Returns the problem and its line without the text, which may hold a secret."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "it is no text in YAML"
    return f"line {mark.line + 1}: {problem}" if mark is not None else str(problem)
