"""Results are kept part by part. After an interruption at any moment, the next run plays only the missing seeds."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.simulation.search.code_version import PACKAGES, code_version
from lab.simulation.search.searching import never_fired
from lab.simulation.search.standing import PART, OpenParts, Standing
from lab.simulation.search.worlds import FoundBroken, WorldEnd
from rocketmq_broker.testing.simulation.plan import Plan


def end(seed: int, *broken: FoundBroken) -> WorldEnd:
    return WorldEnd(Plan(seed, {}, (), 1.0), f"digest-{seed}", {"process.kill": seed, "rare": 0}, 10.0, broken, cpu_s=0.5)


def play(standing: Standing, wanted: range) -> list[int]:
    """Plays the missing seeds and returns them."""
    parts = standing.missing(wanted)
    for part in parts:
        standing.add([end(seed) for seed in reversed(part)])
    return [seed for part in parts for seed in part]


def test_a_new_standing_misses_all_seeds_in_parts(tmp_path: Path) -> None:
    parts = Standing(tmp_path / "v.jsonl").missing(range(1, 61))
    assert parts == [range(1, PART), range(PART, 2 * PART), range(2 * PART, 61)]


def test_what_was_added_is_there_after_a_restart(tmp_path: Path) -> None:
    play(Standing(tmp_path / "folder" / "v.jsonl"), range(1, 61))
    standing = Standing(tmp_path / "folder" / "v.jsonl")
    assert standing.missing(range(1, 61)) == []
    assert standing.totals.worlds == 60
    assert standing.totals.fired == {"process.kill": sum(range(1, 61)), "rare": 0}
    assert standing.totals.simulated_s == 600
    assert standing.totals.cpu_s == 30


@given(
    st.lists(st.tuples(st.integers(0, 120), st.integers(1, 90)), max_size=5), st.tuples(st.integers(0, 120), st.integers(1, 90))
)
def test_no_seed_is_played_twice_and_none_is_left_out(earlier: list[tuple[int, int]], now: tuple[int, int]) -> None:
    standing = Standing(Path("/dev/null"))
    played: list[int] = []
    for first, count in [*earlier, now]:
        played += play(standing, range(first, first + count))
    assert len(played) == len(set(played))
    assert set(range(now[0], now[0] + now[1])) <= set(played)


@given(torn=st.integers(1, 10_000))
def test_a_line_that_was_cut_is_played_again(tmp_path_factory: pytest.TempPathFactory, torn: int) -> None:
    file = tmp_path_factory.mktemp("standing") / "v.jsonl"
    play(Standing(file), range(PART, 3 * PART))
    whole = file.read_bytes()
    last = len(whole.splitlines()[-1])
    file.write_bytes(whole[: -2 - torn % (last - 1)])
    standing = Standing(file)
    assert standing.missing(range(PART, 3 * PART)) == [range(2 * PART, 3 * PART)]
    play(standing, range(PART, 3 * PART))
    assert Standing(file).missing(range(PART, 3 * PART)) == []
    assert Standing(file).totals.worlds == 2 * PART


def test_seeds_that_failed_are_remembered(tmp_path: Path) -> None:
    broken = FoundBroken("Each credit has its order.", "order-3 has none", ("order-3",))
    Standing(tmp_path / "v.jsonl").add([end(2), end(3, broken)])
    (failed,) = Standing(tmp_path / "v.jsonl").totals.failed
    assert (failed.seed, failed.promise, failed.text) == (3, "Each credit has its order.", "order-3 has none")


def test_a_part_is_whole_when_the_last_of_its_seeds_has_come() -> None:
    open_parts = OpenParts([range(2), range(25, 27)])
    assert list(open_parts.seeds()) == [0, 1, 25, 26]
    assert open_parts.add(end(25)) is None
    assert open_parts.add(end(0)) is None
    assert [one.seed for one in open_parts.add(end(26)) or []] == [25, 26]


def test_the_digest_of_a_part_does_not_depend_on_the_order_of_its_ends(tmp_path: Path) -> None:
    one = Standing(tmp_path / "one").add([end(1), end(2)])
    other = Standing(tmp_path / "other").add([end(2), end(1)])
    assert one == other


def test_what_never_fired_is_named_once_enough_worlds_were_played() -> None:
    assert never_fired({"process.kill": 3, "rare branch": 0}, 1000, ["process.kill", "outage"]) == ["outage", "rare branch"]
    assert never_fired({}, 999, ["outage"]) == []


def test_the_version_of_the_code_changes_with_its_sources_alone(tmp_path: Path) -> None:
    source = tmp_path / "lab" / "simulation" / "world.py"
    source.parent.mkdir(parents=True)
    source.write_text("a = 1\n")
    before = code_version(tmp_path)
    source.with_name("notes.txt").write_text("a note")
    assert code_version(tmp_path) == before
    source.write_text("a = 2\n")
    assert code_version(tmp_path) != before
    source.write_text("a = 1\n")
    source.rename(source.with_name("other.py"))
    assert code_version(tmp_path) != before


def test_the_version_covers_every_package_of_a_world() -> None:
    root = Path(__file__).parents[3]
    assert [package for package in PACKAGES if not (root / package).is_dir()] == []
