"""Parses and formats plain_acl.yml (RocketMQ's PlainPermissionManager.load and AclUtils)."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import yaml

from rocketmq_broker.acl.account import Account, PlainAcl
from rocketmq_broker.acl.errors import AccountMistake
from rocketmq_broker.acl.permission import parse_named_permission, parse_permission
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
_MAX_LENGTH: Final = 4 * 1024 * 1024


class _MistakeAtLine(AccountMistake):
    def __init__(self, line: int, text: str) -> None:
        super().__init__(f"line {line}: {text}")
        self.line = line
        self.text = text


def parse_plain_acl(text: str) -> PlainAcl:
    """Parses the text of a file. Raises AccountMistake with the line and the account but without any secret."""
    if len(text) > _MAX_LENGTH:
        raise AccountMistake(f"file too long: {len(text)} characters, at most {_MAX_LENGTH}")
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise AccountMistake(_problem_of(error)) from None
    members = _members(root, "the file") if root is not None and not _is_null(root) else {}
    for name, node in members.items():
        if name not in (_WHITE_ADDRESSES, _ACCOUNTS, _DATA_VERSION):
            raise _at(node, f"unknown property {name}: expected {_WHITE_ADDRESSES} or {_ACCOUNTS}")
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
    """Returns the text of a file with these accounts. Comments of the old file are not kept, as with RocketMQ's own tools."""
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
    """Returns the field of Account that the property sets, and its value. Raises AccountMistake."""
    if name in _TEXTS:
        return _TEXTS[name], "" if _is_null(node) else _checked(node, _CHECKS.get(name, str))
    if name in _LISTS:
        return _LISTS[name], tuple(_checked(item, parse_named_permission) for item in _entries(node, name))
    if name in (_ADMIN, _AUDITOR):
        return name, _boolean(node, name)
    raise _at(node, f"unknown property {name}: expected {', '.join((*_TEXTS, _ADMIN, _AUDITOR, *_LISTS))}")


def _checked(node: yaml.Node, parse: Callable[[str], object]) -> str:
    """Returns the node's text unchanged if it can be parsed. Raises AccountMistake with the node's line."""
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
            raise _at(entry, f"duplicate account {account.access_key!r}")
        accounts[account.access_key] = account
    return tuple(accounts.values())


def _data_version(node: yaml.Node | None) -> tuple[int, int]:
    """Returns the counter and the timestamp in the list `dataVersion`. Both are 0 if the list is missing or empty."""
    entries = _entries(node, _DATA_VERSION)
    if not entries:
        return 0, 0
    members = _members(entries[0], _DATA_VERSION)
    texts = [_text(members[name]) if name in members else "0" for name in ("counter", "timestamp")]
    if not all(text.isdecimal() for text in texts):
        raise _at(entries[0], f"{_DATA_VERSION}: counter and timestamp must be whole numbers")
    return int(texts[0]), int(texts[1])


def _members(node: yaml.Node, what: str) -> dict[str, yaml.Node]:
    if not isinstance(node, yaml.MappingNode):
        raise _at(node, f"{what} must be a mapping, for example `accessKey: orders`")
    members: dict[str, yaml.Node] = {}
    for key, value in node.value:
        name = _text(key)
        if name in members:
            raise _at(key, f"duplicate property {name}")
        members[name] = value
    return members


def _entries(node: yaml.Node | None, name: str) -> list[yaml.Node]:
    if node is None or _is_null(node):
        return []
    if not isinstance(node, yaml.SequenceNode):
        raise _at(node, f"{name} must be a list: each entry on its own line after a hyphen")
    return list(node.value)


def _text(node: yaml.Node) -> str:
    """Returns a scalar as written: 012345 stays 012345."""
    if not isinstance(node, yaml.ScalarNode):
        raise _at(node, "expected a single value, not a list or a mapping")
    return str(node.value).strip()


def _boolean(node: yaml.Node, name: str) -> bool:
    value = _BOOLEANS.get(_text(node).lower())
    if value is None:
        raise _at(node, f"{name} must be true or false")
    return value


def _is_null(node: yaml.Node) -> bool:
    return bool(node.tag == "tag:yaml.org,2002:null")


def _at(node: yaml.Node, text: str) -> _MistakeAtLine:
    return _MistakeAtLine(node.start_mark.line + 1, text)


def _problem_of(error: yaml.YAMLError) -> str:
    """Describes the problem and its line without the file's text, which may contain a secret."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "not valid YAML"
    return f"line {mark.line + 1}: {problem}" if mark is not None else str(problem)
