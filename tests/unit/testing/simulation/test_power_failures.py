"""After a power failure, unsynced sectors and names may be lost in any order, but no synced data is lost."""

import random
from collections.abc import Iterator
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from rocketmq_broker.testing.simulation.disk import SimulatedDisk
from rocketmq_broker.testing.simulation.history import History

FOLDER: Final = Path("/store")
FILE: Final = FOLDER / "file"
SECTOR: Final = 512
LONGEST: Final = 12_000
NAMES: Final = ("a", "b", "c")

Step = tuple[str, int, int]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, LONGEST // 2), st.integers(1, LONGEST // 2)),
        st.tuples(st.just("truncate"), st.integers(0, LONGEST), st.just(0)),
        st.tuples(st.sampled_from(["sync", "begin sync", "end sync", "sync fails", "power"]), st.just(0), st.just(0)),
    ),
    max_size=20,
)


class Possible:
    """The contents of the file since the last sync. After a failure, each sector and the length come from one of them."""

    def __init__(self, content: bytes) -> None:
        self.versions = [content]
        self.is_refused = False
        """Whether the disk refused a sync: then a later one promises nothing of what was written before."""

    def synced(self, since: int) -> None:
        """Drops the versions before number `since`."""
        if not self.is_refused:
            del self.versions[:since]

    def allows(self, content: bytes) -> bool:
        if len(content) not in {len(version) for version in self.versions}:
            return False
        for at in range(0, len(content), SECTOR):
            found = content[at : at + SECTOR]
            if found not in {version[at : at + len(found)].ljust(len(found), b"\0") for version in self.versions}:
                return False
        return True


@given(STEPS, st.integers(0, 1 << 32))
def test_each_sector_is_one_that_was_written_since_the_last_sync_or_the_synced_one(steps: list[Step], seed: int) -> None:
    disk = SimulatedDisk("disk", History(lambda: 0), random.Random(seed))
    files = disk.opened()
    files.make_directory(FOLDER)
    file = files.open(FILE, create=True)
    files.sync_directory(FOLDER)
    possible = Possible(b"")
    begun = None
    for number, (step, position, length) in enumerate([*steps, ("power", 0, 0)], start=1):
        if step == "write":
            files.write(file, bytes([number]) * length, position)
        elif step == "truncate":
            files.truncate(file, position)
        elif step == "sync":
            files.sync(file)
            possible.synced(len(possible.versions) - 1)
            begun = None
        elif step == "begin sync":
            begun = files.begin_sync(file), len(possible.versions) - 1
        elif step == "end sync" and begun is not None:
            files.sync(file, begun[0])
            possible.synced(begun[1])
            begun = None
        elif step == "sync fails":
            disk.fail_syncs(1)
            with suppress(OSError):
                files.sync(file)
            possible.is_refused = True
        elif step == "power":
            disk.lose_power()
            files = disk.opened()
            file = files.open(FILE)
            left = files.read(file, 2 * LONGEST, 0)
            assert possible.allows(left)
            possible = Possible(left)
            begun = None
        possible.versions.append(files.read(file, 2 * LONGEST, 0))


Change = dict[str, int | None]


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("create"), st.sampled_from(NAMES), st.just("")),
            st.tuples(st.just("unlink"), st.sampled_from(NAMES), st.just("")),
            st.tuples(st.just("rename"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
            st.tuples(st.just("sync"), st.just(""), st.just("")),
        ),
        max_size=12,
    ),
    st.integers(0, 1 << 32),
)
def test_names_are_those_of_some_changes_each_as_a_whole_and_after_those_it_builds_on(
    steps: list[tuple[str, str, str]], seed: int
) -> None:
    disk = SimulatedDisk("disk", History(lambda: 0), random.Random(seed))
    files = disk.opened()
    files.make_directory(FOLDER)
    synced: dict[str, int] = {}
    names: dict[str, int] = {}
    changes: list[Change] = []
    for number, (step, name, other) in enumerate(steps, start=1):
        if step == "sync":
            files.sync_directory(FOLDER)
            synced, changes = dict(names), []
            continue
        if (name in names) == (step == "create") or name == other:
            continue
        if step == "create":
            file = files.open(FOLDER / name, create=True)
            files.write(file, b"%d" % number, 0)
            files.sync(file)
            change: Change = {name: number}
        elif step == "unlink":
            files.unlink(FOLDER / name)
            change = {name: None}
        else:
            files.rename(FOLDER / name, FOLDER / other)
            change = {name: None, other: names[name]}
        changes.append(change)
        names = changed(names, [change])
    disk.lose_power()
    files = disk.opened()
    left = {name: int(files.read(files.open(FOLDER / name), 9, 0)) for name in files.list(FOLDER)}
    assert left in [changed(synced, kept) for kept in what_may_be_kept(changes)]


def changed(names: dict[str, int], changes: list[Change]) -> dict[str, int]:
    after: Change = dict(names)
    for change in changes:
        after |= change
    return {name: number for name, number in after.items() if number is not None}


def what_may_be_kept(changes: list[Change]) -> Iterator[list[Change]]:
    for count in range(len(changes) + 1):
        for chosen in combinations(range(len(changes)), count):
            builds_on = {
                earlier for later in chosen for earlier in range(later) if not changes[earlier].keys().isdisjoint(changes[later])
            }
            if builds_on <= set(chosen):
                yield [changes[number] for number in chosen]


def test_a_folder_whose_name_was_not_synced_may_be_lost_with_all_that_is_in_it() -> None:
    left = set()
    for seed in range(40):
        disk = SimulatedDisk("disk", History(lambda: 0), random.Random(seed))
        files = disk.opened()
        files.make_directory(FOLDER)
        files.make_directory(FOLDER / "queue", is_durable=False)
        file = files.open(FOLDER / "queue" / "file", create=True)
        files.sync(file)
        files.sync_directory(FOLDER / "queue")
        disk.lose_power()
        left.add((tuple(disk.opened().list(FOLDER)), tuple(disk.opened().list(FOLDER / "queue"))))
    assert left == {((), ()), (("queue",), ("file",))}


def test_a_folder_whose_name_was_synced_is_there() -> None:
    for seed in range(40):
        disk = SimulatedDisk("disk", History(lambda: 0), random.Random(seed))
        files = disk.opened()
        files.make_directory(FOLDER / "queue", is_durable=False)
        files.sync_directory(FOLDER)
        files.sync_directory(FOLDER.parent)
        disk.lose_power()
        assert disk.opened().list(FOLDER) == ["queue"]


def test_the_parts_of_files_that_were_not_synced_are_known() -> None:
    disk = SimulatedDisk("disk", History(lambda: 0), random.Random(3))
    files = disk.opened()
    files.make_directory(FOLDER)
    kept, lost = (files.open(FOLDER / name, create=True) for name in NAMES[:2])
    files.sync_directory(FOLDER)
    for file in (kept, lost):
        files.write(file, b"1" * 100, 0)
        files.sync(file)
    assert disk.unsynced_at_power_failures == []
    files.write(lost, b"2" * 5_000, 100)
    before = disk.contents()
    disk.lose_power()
    first = next(
        at for at, new in enumerate(disk.contents()[FOLDER / "b"].ljust(5_100, b"\0")) if new != before[FOLDER / "b"][at]
    )
    assert disk.unsynced_at_power_failures == [(FOLDER / "b", range(first, 5_100))]
    assert first >= 100
