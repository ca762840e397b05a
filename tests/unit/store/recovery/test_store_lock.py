"""A second broker cannot open the same store, whichever of the store's folders it configures."""

import errno
import os
import stat
import sys
from pathlib import Path

import pytest

from rocketmq_broker.store import MessageStore, StoreLocked, StoreUnwritable
from rocketmq_broker.store.files import OsFileSystem
from tests.unit.store.conftest import append, bodies, crash, open_store, send, small_config

folders_are_locked = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no locks on folders")
open_files_move = pytest.mark.skipif(sys.platform == "win32", reason="Windows does not move or remove an open file")


@folders_are_locked
def test_two_roots_with_one_commit_log_are_one_store(tmp_path: Path) -> None:
    log = tmp_path / "log"
    first = MessageStore.open(small_config(tmp_path / "a", commit_log_path=log))
    with pytest.raises(StoreLocked, match=f"{log} is in use by another broker"):
        MessageStore.open(small_config(tmp_path / "b", commit_log_path=log))
    first.close()
    MessageStore.open(small_config(tmp_path / "b", commit_log_path=log)).close()


@folders_are_locked
def test_a_link_to_the_commit_log_is_the_commit_log(tmp_path: Path) -> None:
    open_store(small_config(tmp_path / "a"))
    (tmp_path / "link").symlink_to(tmp_path / "a" / "commitlog")
    with pytest.raises(StoreLocked):
        MessageStore.open(small_config(tmp_path / "b", commit_log_path=tmp_path / "link"))


@folders_are_locked
def test_without_its_lock_file_a_store_is_locked_still(tmp_path: Path) -> None:
    open_store(small_config(tmp_path))
    (tmp_path / "lock").unlink()
    with pytest.raises(StoreLocked, match="commitlog is in use by another broker"):
        MessageStore.open(small_config(tmp_path))


@folders_are_locked
def test_a_store_that_could_not_be_opened_leaves_no_lock_behind(tmp_path: Path) -> None:
    log = tmp_path / "log"
    open_store(small_config(tmp_path / "a", commit_log_path=log))
    with pytest.raises(StoreLocked):
        MessageStore.open(small_config(tmp_path / "b", commit_log_path=log))
    MessageStore.open(small_config(tmp_path / "b")).close()


def test_the_locked_folder_has_no_file_that_rocketmq_would_take_for_a_segment(tmp_path: Path) -> None:
    store = open_store(small_config(tmp_path))
    send(store, b"1")
    assert os.listdir(tmp_path / "commitlog") == ["00000000000000000000"]


@open_files_move
@pytest.mark.parametrize("what", ["lock", "commitlog"])
@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_lock_that_was_removed_or_replaced_is_noticed(tmp_path: Path, what: str, how: str) -> None:
    store = MessageStore.open(small_config(tmp_path))
    assert store.lock.what_is_wrong() is None
    path = tmp_path / what
    path.rename(tmp_path / "elsewhere")
    if how == "replaced":
        path.mkdir() if what == "commitlog" else path.touch()
    complaint = store.lock.what_is_wrong()
    assert complaint is not None
    assert complaint.startswith(f"{path} was removed or replaced")
    crash(store)


def test_a_folder_that_cannot_be_locked_is_said_to_be_one_and_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class NetworkFiles(OsFileSystem):
        def lock(self, file: int) -> bool:
            if stat.S_ISDIR(os.fstat(file).st_mode):
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            return super().lock(file)

    store = MessageStore.open(small_config(tmp_path), NetworkFiles())
    assert store.recovery.actions == [
        f"cannot lock the folder {tmp_path / 'commitlog'}: Bad file descriptor; do not start a second broker on it"
    ]
    send(store, b"1")
    assert bodies(store) == [b"1"]
    store.close()


def test_a_store_that_was_given_up_touches_no_file_any_more(tmp_path: Path) -> None:
    store = MessageStore.open(small_config(tmp_path))
    send(store, b"kept")
    store.flush()
    append(store, b"under way")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    store.give_up("another broker may use the store")

    for deed in (lambda: append(store), store.write, store.flush, store.checkpoints.begin, lambda: store.expiry.expire(0)):
        with pytest.raises(StoreUnwritable, match="another broker may use the store"):
            deed()
    assert bodies(store) == [b"kept"]
    store.close()
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    again = open_store(small_config(tmp_path))
    assert not again.recovery.was_stopped_cleanly
    assert bodies(again) == [b"kept"]
