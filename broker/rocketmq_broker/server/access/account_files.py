"""Reads and replaces the account files: `conf/plain_acl.yml` and all files in `conf/acl` (RocketMQ's PlainPermissionManager)."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rocketmq_broker.acl import AccessRules, AccountMistake
from rocketmq_broker.acl.account import PlainAcl
from rocketmq_broker.platform.durability import sync_directory, sync_file

_SUFFIXES: Final = (".yml", ".yaml")
_OF_MQADMIN: Final = "tools.yml"
_OWNER_ONLY: Final = 0o600

Stamp = tuple[tuple[str, int, int, int], ...]
"""The path, modification time, size and inode of each file. Any change of the files changes the stamp."""


@dataclass(frozen=True, slots=True)
class AccountFiles:
    """Reads and replaces the account files. Every method raises OSError if a file cannot be read or written."""

    default_file: Path
    """The file to which new accounts are added."""
    folder: Path
    """The folder of further account files: all files below it with the extension .yml or .yaml, except tools.yml."""

    def paths(self) -> list[Path]:
        """Returns the files that exist, sorted by path."""
        found = {path for suffix in _SUFFIXES for path in self.folder.rglob(f"*{suffix}") if path.name != _OF_MQADMIN}
        return sorted({*(path for path in found if path.is_file()), *([self.default_file] if self.default_file.exists() else [])})

    def stamp(self) -> Stamp:
        """Returns a stamp that differs after any change of the files. Does not read the content of the files."""
        stats = [(path, path.stat()) for path in self.paths()]
        return tuple((str(path), stat.st_mtime_ns, stat.st_size, stat.st_ino) for path, stat in stats)

    def read(self) -> dict[str, PlainAcl]:
        """Returns the content of each file. Raises AccountMistake, which names the file, the line and the account."""
        if not (paths := self.paths()):
            raise AccountMistake(f"{self.default_file}: no such file; create it with at least one account")
        return {str(path): _parsed(path) for path in paths}

    def write(self, path: str, acl: PlainAcl) -> None:
        """Replaces the file atomically, and syncs it to disk.

        Keeps the permissions of an existing file. A new file is readable only by its owner.
        """
        from rocketmq_broker.acl.plain_acl_text import plain_acl_text

        target = Path(path).resolve()
        part = target.with_name(f".{target.name}.part")
        mode = target.stat().st_mode & 0o777 if target.exists() else _OWNER_ONLY
        with suppress(FileNotFoundError):
            part.unlink()
        try:
            with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
                file.write(plain_acl_text(acl))
                file.flush()
                sync_file(file.fileno())
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
        sync_directory(target.parent)


def rules_of(files: Mapping[str, PlainAcl]) -> AccessRules:
    """Returns the rules of all files together. Raises AccountMistake if two files contain the same account."""
    seen: dict[str, str] = {}
    for path, acl in files.items():
        for account in acl.accounts:
            if account.access_key in seen:
                raise AccountMistake(f"{path}: account {account.access_key!r} is also in {seen[account.access_key]}")
            seen[account.access_key] = path
    accounts = [account for acl in files.values() for account in acl.accounts]
    return AccessRules(accounts, [addresses for acl in files.values() for addresses in acl.trusted()])


def _parsed(path: Path) -> PlainAcl:
    # Imported here, and in `write`, because a broker without accounts needs no YAML.
    from rocketmq_broker.acl.plain_acl_text import parse_plain_acl

    try:
        return parse_plain_acl(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise AccountMistake(f"{path}: not a text file in UTF-8") from None
    except AccountMistake as error:
        raise AccountMistake(f"{path}: {error}") from None
