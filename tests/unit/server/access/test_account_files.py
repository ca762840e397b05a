"""Tests account files: which files count, the errors for mistakes, and how files are replaced."""

import os
from pathlib import Path

import pytest

from rocketmq_broker.acl import Account, AccountMistake
from rocketmq_broker.acl.account import PlainAcl
from rocketmq_broker.server.access import AccountFiles
from rocketmq_broker.server.access.account_files import rules_of

ACCOUNT = "accounts:\n- accessKey: {key}\n  secretKey: a long secret\n"


@pytest.fixture
def files(tmp_path: Path) -> AccountFiles:
    (tmp_path / "conf" / "acl" / "more").mkdir(parents=True)
    return AccountFiles(tmp_path / "conf" / "plain_acl.yml", tmp_path / "conf" / "acl")


def test_the_default_file_and_all_of_the_folder_count(files: AccountFiles) -> None:
    files.default_file.write_text(ACCOUNT.format(key="default-key"))
    for name in ("a.yml", "b.yaml", "more/c.yml", "tools.yml", "notes.txt"):
        (files.folder / name).write_text(ACCOUNT.format(key=f"key-{name.replace('/', '-')}"))
    keys = {account.access_key for acl in files.read().values() for account in acl.accounts}
    assert keys == {"default-key", "key-a.yml", "key-b.yaml", "key-more-c.yml"}


def test_no_file_at_all_is_a_mistake(files: AccountFiles) -> None:
    with pytest.raises(AccountMistake, match=r"plain_acl\.yml: no such file"):
        files.read()


def test_a_mistake_names_the_file(files: AccountFiles) -> None:
    files.default_file.write_text("accounts:\n- accessKey: short\n")
    with pytest.raises(AccountMistake, match=r"plain_acl\.yml: line 2: account 'short'"):
        files.read()
    files.default_file.write_bytes(b"\xff\xfe")
    with pytest.raises(AccountMistake, match="UTF-8"):
        files.read()


def test_an_account_in_two_files_is_a_mistake(files: AccountFiles) -> None:
    files.default_file.write_text(ACCOUNT.format(key="the-same-key"))
    (files.folder / "a.yml").write_text(ACCOUNT.format(key="the-same-key"))
    with pytest.raises(AccountMistake, match=r"'the-same-key' is also in "):
        rules_of(files.read())


def test_the_stamp_changes_with_the_files(files: AccountFiles) -> None:
    files.default_file.write_text(ACCOUNT.format(key="default-key"))
    before = files.stamp()
    assert files.stamp() == before
    files.default_file.write_text(ACCOUNT.format(key="another-key"))
    changed = files.stamp()
    (files.folder / "a.yml").write_text("")
    assert len({before, changed, files.stamp()}) == 3


def test_a_new_file_is_readable_for_its_owner_alone_and_an_old_one_as_before(files: AccountFiles) -> None:
    acl = PlainAcl(accounts=(Account(access_key="some-key", secret_key="a long secret"),))
    files.write(str(files.default_file), acl)
    assert files.default_file.stat().st_mode & 0o777 == 0o600
    files.default_file.chmod(0o640)
    files.write(str(files.default_file), acl)
    assert files.default_file.stat().st_mode & 0o777 == 0o640
    assert files.read() == {str(files.default_file): acl}


def test_a_failed_replacement_leaves_the_file_as_it_was(files: AccountFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    files.default_file.write_text(ACCOUNT.format(key="default-key"))

    def no_space(file: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space"):
        files.write(str(files.default_file), PlainAcl())
    assert files.default_file.read_text() == ACCOUNT.format(key="default-key")
    assert {path.name for path in files.default_file.parent.iterdir()} == {"acl", "plain_acl.yml"}


def test_a_link_stays_a_link(files: AccountFiles, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere.yml"
    target.write_text(ACCOUNT.format(key="default-key"))
    files.default_file.symlink_to(target)
    files.write(str(files.default_file), PlainAcl(counter=7))
    assert files.default_file.is_symlink()
    assert "counter: 7" in target.read_text()
