"""The audit of repairs is written line by line. Reading it returns the repairs that can be trusted."""

from pathlib import Path

import pytest

from pipelines.errors import UnreadableAudit
from pipelines.judging.rules import KnownRepairs
from pipelines.repair.audit import Audit, known_repairs
from pipelines.repair.plan import Action, RepairStep, failed


def step(number: int, action: Action, subject: str) -> RepairStep:
    return RepairStep(f"7-{number:04d}", action, subject, "missing_credit", [])


def test_the_steps_of_all_files_are_known_also_those_that_were_interrupted_or_failed(tmp_path: Path) -> None:
    first, second = Audit(tmp_path / "first"), Audit(tmp_path / "second")
    first.begin(step(1, Action.REVERSE, "it's"))
    first.begin(published := step(2, Action.PUBLISH, "b"))
    first.end(published, failed("no answer: it may have been sent"))
    first.begin(step(3, Action.RESUME, "c"))
    second.begin(step(4, Action.REBUILD_BALANCE, "ada"))
    second.begin(step(5, Action.REVERSE, "d"))
    expected = KnownRepairs(frozenset({("7-0001", "it's"), ("7-0005", "d")}), frozenset({"b"}))
    assert known_repairs([first.path, second.path]) == expected


def test_a_torn_last_line_names_no_step_that_had_begun(tmp_path: Path) -> None:
    audit = Audit(tmp_path / "audit")
    audit.begin(step(1, Action.REVERSE, "a"))
    audit.begin(step(2, Action.REVERSE, "b"))
    audit.path.write_bytes(audit.path.read_bytes()[:-9])
    assert known_repairs([audit.path]) == KnownRepairs(frozenset({("7-0001", "a")}))


@pytest.mark.parametrize("line", [b'{"step": 7}', b"[]", b"7", b"{", b"\xff\xfe", b"<html>", b"[" * 60_000])
def test_another_file_is_refused_with_its_line(tmp_path: Path, line: bytes) -> None:
    audit = Audit(tmp_path / "audit")
    audit.begin(step(1, Action.REVERSE, "a"))
    audit.path.write_bytes(audit.path.read_bytes() + line + b"\n")
    with pytest.raises(UnreadableAudit, match=f"^audit {audit.path}: line 2 was not written by repair --apply: "):
        known_repairs([audit.path])


def test_a_file_that_is_away_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnreadableAudit, match=f"^audit {tmp_path}/away: No such file or directory$"):
        known_repairs([tmp_path / "away"])
