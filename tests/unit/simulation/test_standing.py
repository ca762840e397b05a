"""Results are kept seed by seed. After an interruption at any moment, the next run plays only the missing seeds."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.simulation.__main__ import PACKAGES
from rocketmq_broker.testing.exploring.search.code_version import code_version
from rocketmq_broker.testing.exploring.search.standing import Standing
from rocketmq_broker.testing.exploring.search.worlds import FoundBroken, WorldEnd, failed_among
from rocketmq_broker.testing.simulation.plan import Plan


def end(seed: int, *broken: FoundBroken) -> WorldEnd:
    return WorldEnd(Plan(seed, {}, (), 1.0), f"digest-{seed}", {"process.kill": seed, "rare": 0}, 10.0, broken, cpu_s=0.5)


def play(standing: Standing, wanted: range) -> list[int]:
    """Plays the missing seeds and returns them."""
    seeds = standing.missing(wanted)
    for seed in seeds:
        standing.add(end(seed))
    return seeds


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
    play(Standing(file), range(1, 4))
    whole = file.read_bytes()
    last = len(whole.splitlines()[-1])
    file.write_bytes(whole[: -2 - torn % (last - 1)])
    standing = Standing(file)
    assert play(standing, range(1, 4)) == [3]
    assert Standing(file).missing(range(1, 4)) == []
    assert Standing(file).totals.worlds == 3


def test_seeds_that_failed_are_remembered(tmp_path: Path) -> None:
    standing = Standing(tmp_path / "v.jsonl")
    standing.add(end(2))
    standing.add(end(3, FoundBroken("Each credit has its order.", "order-3 has none", ("order-3",))))
    (failed,) = Standing(tmp_path / "v.jsonl").totals.failed
    assert (failed.seed, failed.failure) == (3, "Each credit has its order. order-3 has none")


def test_what_never_fired_in_any_world_is_named(tmp_path: Path) -> None:
    standing = Standing(tmp_path / "v.jsonl")
    standing.add(replace(end(1), fired={"process.kill": 3, "rare branch": 0, "outage": 0}))
    standing.add(replace(end(2), fired={"process.kill": 0, "rare branch": 1, "outage": 0, "freeze": 0}))
    assert standing.totals.never_fired == ["outage", "freeze"]
    assert Standing(tmp_path / "v.jsonl").totals.never_fired == ["outage", "freeze"]


def test_a_search_stops_at_the_first_failure_and_does_not_keep_it() -> None:
    broken = FoundBroken("Each credit has its order.", "order-3 has none", ("order-3",))
    ends, kept = [end(1), end(2, broken), end(3), end(4, broken)], list[WorldEnd]()
    assert failed_among(iter(ends), kept.append) == [ends[1]]
    assert kept == [ends[0]]
    kept.clear()
    assert failed_among(iter(ends), kept.append, goes_on=True) == [ends[1], ends[3]]
    assert kept == ends


def test_the_version_changes_with_the_test_and_its_sources_alone(tmp_path: Path) -> None:
    source = tmp_path / "lab" / "simulation" / "world.py"
    source.parent.mkdir(parents=True)
    source.write_text("a = 1\n")
    before = code_version("shop:test", [tmp_path])
    source.with_name("notes.txt").write_text("a note")
    assert code_version("shop:test", [tmp_path]) == before
    source.write_text("a = 2\n")
    assert code_version("shop:test", [tmp_path]) != before
    source.write_text("a = 1\n")
    assert code_version("shop:other_test", [tmp_path]) != before
    source.rename(source.with_name("other.py"))
    assert code_version("shop:test", [tmp_path]) != before


def test_the_version_covers_every_package_of_a_world() -> None:
    root = Path(__file__).parents[3]
    assert [package for package in PACKAGES if not (root / package).is_dir()] == []
