"""Failpoints armed by files are triggered once, by their intended target, and are then recorded."""

from pathlib import Path

import pytest

from service_runtime.failing.armed_failpoints import ArmedFailpoints, FailedOnPurpose, Hit, read_hits

ORDER = b'{"customer": "ada"}'


def test_nothing_is_hit_where_there_is_no_folder(tmp_path: Path) -> None:
    assert not ArmedFailpoints(tmp_path / "missing", lambda: 1_000).is_hit("lose-commit", ORDER)
    assert read_hits(tmp_path / "missing") == []


@pytest.mark.parametrize("meant_for", ["", "ada", "ada\n"])
def test_a_failpoint_is_hit_once(meant_for: str, tmp_path: Path) -> None:
    (tmp_path / "lose-commit").write_text(meant_for)
    failpoints = ArmedFailpoints(tmp_path, lambda: 1_000)
    assert [failpoints.is_hit("lose-commit", ORDER), failpoints.is_hit("lose-commit", ORDER)] == [True, False]


def test_a_failpoint_that_is_meant_for_another_customer_stays_armed(tmp_path: Path) -> None:
    (tmp_path / "lose-commit").write_text("grace")
    assert not ArmedFailpoints(tmp_path, lambda: 1_000).is_hit("lose-commit", ORDER)
    assert (tmp_path / "lose-commit").exists()
    assert read_hits(tmp_path) == []


def test_what_was_hit_is_on_record_in_order(tmp_path: Path) -> None:
    failpoints = ArmedFailpoints(tmp_path, lambda: 1_000)
    for name, transaction_id in (("lose-commit", "T1"), ("lose-delivery", None)):
        (tmp_path / name).write_text("ada")
        failpoints.is_hit(name, ORDER, transaction_id)
    first, second = read_hits(tmp_path)
    assert first == Hit(first.at_ms, "lose-commit", "ada", "T1")
    assert (second.failpoint, second.transaction_id) == ("lose-delivery", None)
    assert 0 <= second.at_ms - first.at_ms < 60_000


def test_the_error_at_a_failpoint_names_it() -> None:
    assert str(FailedOnPurpose("lose-task")) == "failpoint lose-task"
