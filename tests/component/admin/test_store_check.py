"""Tests that `doctor --store` examines a stopped, killed or damaged store without changing it."""

import hashlib
import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rocketmq_broker.admin.__main__ import app
from rocketmq_broker.admin.health.finding import HealthFinding
from rocketmq_broker.admin.health.store_check import examine_store, store_config
from rocketmq_broker.client import Message
from rocketmq_broker.testing import RocketMQ

SEGMENT = 1 << 20
NOW_MS = 4_000_000_000_000


@pytest.fixture
async def store(tmp_path: Path) -> Path:
    """Returns the directory of a store with two segments, whose broker has stopped."""
    root = tmp_path / "store"
    async with RocketMQ({"mapedFileSizeCommitLog": SEGMENT}, store=root) as rocketmq:
        producer = await rocketmq.producer("shop", compress_message_body_over=1 << 30)
        for number in range(12):
            body = bytes([number + 1]) * 100_000
            await producer.send(Message.of("orders", body), timeout_ms=60_000)
    root.chmod(0o700)
    assert len(list((root / "commitlog").iterdir())) >= 2
    return root


def contents(root: Path) -> dict[str, str]:
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def looked_at(root: Path) -> list[HealthFinding]:
    before = contents(root)
    findings = examine_store(root, NOW_MS)
    assert contents(root) == before, "looking changed the store"
    return findings


def wrongs(findings: list[HealthFinding]) -> list[str]:
    return [finding.what for finding in findings if finding.is_wrong]


def said(findings: list[HealthFinding]) -> str:
    return "\n".join(finding.what for finding in findings)


def test_a_store_that_was_stopped_is_whole(store: Path) -> None:
    findings = looked_at(store)
    assert not wrongs(findings)
    assert "The last broker stopped cleanly." in said(findings)
    assert "Its commit log has 12 intact records up to offset" in said(findings)
    assert "in 2 files" in said(findings) or "in 3 files" in said(findings)


async def test_a_store_whose_broker_was_killed_is_recovered_by_the_next_start(tmp_path: Path) -> None:
    root = tmp_path / "store"
    async with RocketMQ(store=root) as rocketmq:
        producer = await rocketmq.producer("shop")
        await producer.send(Message.of("orders", "order 1"))
        await rocketmq.crash()
        root.chmod(0o700)
        findings = looked_at(root)
        await rocketmq.restart()
    assert not wrongs(findings)
    assert "did not stop cleanly: it was killed" in said(findings)
    assert "Its commit log has 1 intact records" in said(findings)


def first_segment(root: Path) -> Path:
    return root / "commitlog" / f"{0:020d}"


def test_damage_in_an_old_segment_is_found_although_the_next_start_would_not_read_it(store: Path) -> None:
    with first_segment(store).open("r+b") as file:
        file.seek(250_000)
        file.write(b"damage")
    findings = looked_at(store)
    (what,) = wrongs(findings)
    assert "bytes of the commit log at offset" in what
    assert "are damaged" in what
    assert "Its commit log has 11 intact records" in said(findings)


def end_of(root: Path) -> int:
    """Returns the commit log offset after the last record."""
    (found,) = re.findall(r"up to offset (\d+)", said(looked_at(root)))
    return int(found)


def test_a_torn_end_is_told_as_what_the_next_start_mends(store: Path) -> None:
    end = end_of(store)
    with max((store / "commitlog").iterdir()).open("r+b") as file:
        file.seek(end % SEGMENT)
        file.write(b"half a record")
    (store / "abort").touch()
    findings = looked_at(store)
    assert not wrongs(findings)
    assert f"The next start repairs: the commit log had a torn tail: everything after {end} was cut off." in said(findings)


def test_damage_of_the_last_record_is_wrong_if_it_was_whole_once(store: Path) -> None:
    end = end_of(store)
    with max((store / "commitlog").iterdir()).open("r+b") as file:
        file.seek(end % SEGMENT - 500)
        file.write(b"damage")
    (what,) = wrongs(looked_at(store))
    assert "bytes of the commit log at offset" in what


def cut_out_a_segment(root: Path) -> None:
    first_segment(root).rename(root / "commitlog" / f"{16 * SEGMENT:020d}")


def damage_topics(root: Path) -> None:
    for path in (root / "config").glob("topics.json*"):
        path.write_text('{"topicConfigTable": 7}')


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (cut_out_a_segment, "A broker cannot start on it: "),
        (damage_topics, "A broker cannot start on it: "),
        (lambda root: (root / "config" / "topics.json").write_text("{"), "its backup was read"),
        (lambda root: root.chmod(0o755), "Other users of this machine can read it (mode 755)"),
    ],
)
def test_what_a_broker_could_not_go_on_with_is_wrong(store: Path, damage: Callable[[Path], None], sentence: str) -> None:
    damage(store)
    findings = looked_at(store)
    assert any(sentence in what for what in wrongs(findings)), findings
    assert all(finding.what_to_do for finding in findings if finding.is_wrong)


def test_a_folder_without_a_store_is_wrong(tmp_path: Path) -> None:
    (finding,) = examine_store(tmp_path, NOW_MS)
    assert (finding.is_wrong, finding.what) == (True, "Store not found.")


HOLD = (
    "import fcntl, sys; f = open(sys.argv[1], 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX, 1, 0); print('locked', flush=True); input()"
)


def test_a_store_in_use_is_told_with_its_process_and_is_not_locked(store: Path) -> None:
    command = [sys.executable, "-S", "-c", HOLD, str(store / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        findings = looked_at(store)
        holder.communicate("end\n", timeout=60)
    assert f"A broker is using it (process {holder.pid})" in said(findings)
    assert "The last broker" in said(looked_at(store)), "nobody uses it any more"


def test_the_command_prints_it_even_where_no_broker_runs(store: Path) -> None:
    first_segment(store).write_bytes(bytes(SEGMENT))
    result = CliRunner().invoke(app, ["-b", "127.0.0.1:9", "doctor", "--store", str(store), "--json"])
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert [each["subject"] for each in found if each["isWrong"]][-1] == "broker at 127.0.0.1:9"
    assert f"store {store}" in {each["subject"] for each in found}


def test_how_a_store_was_made_is_read_from_its_files(store: Path) -> None:
    config = store_config(store)
    assert (config.commit_log_segment_size, config.consume_queue_units_per_file) == (SEGMENT, 10_000)


KINDS: dict[str, Callable[[Path], object]] = {
    "FIFO": os.mkfifo,
    "folder": lambda path: path.mkdir(),
    "socket": lambda path: os.mknod(path, stat.S_IFSOCK | 0o600),
    "device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["lock", "checkpoint", "config/topics.json", "config/consumerOffset.json", "commitlog/{first}"])
def test_what_is_no_file_under_a_files_name_keeps_nobody_waiting(store: Path, kind: str, name: str) -> None:
    first = min(path.name for path in (store / "commitlog").iterdir())
    path = store / name.format(first=first)
    path.unlink(missing_ok=True)
    KINDS[kind](path)
    found = wrongs(examine_store(store, NOW_MS))
    assert any("broker cannot start on it" in what or "cannot be read" in what for what in found)
