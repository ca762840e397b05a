"""Saves the results of seeds in a file, so that the next run can continue from there."""

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from rocketmq_broker.message.text.printable import printable
from rocketmq_broker.testing.exploring.search.worlds import WorldEnd


class PlayedSeed(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a seed."""

    seed: int
    digest: str
    simulated_s: float
    cpu_s: float
    fired: dict[str, int] = {}
    failure: str | None = None
    """The first violated guarantee; None if all held."""

    @classmethod
    def of(cls, end: WorldEnd) -> "PlayedSeed":
        """Returns the result of the seed's world."""
        failure = printable(str(end.broken[0])) if end.broken else None
        return cls(end.seed, end.digest, round(end.simulated_s, 3), round(end.cpu_s, 3), dict(end.fired), failure)


class Totals:
    """The sums of results."""

    def __init__(self, results: Iterable[PlayedSeed] = ()) -> None:
        """Adds up these results."""
        self.worlds = 0
        self.simulated_s = self.cpu_s = 0.0
        self.fired: Counter[str] = Counter()
        self.failed: list[PlayedSeed] = []
        for result in results:
            self.add(result)

    def add(self, result: PlayedSeed) -> None:
        """Adds a result."""
        self.worlds += 1
        self.simulated_s += result.simulated_s
        self.cpu_s += result.cpu_s
        self.fired.update(result.fired)
        if result.failure is not None:
            self.failed.append(result)

    @property
    def never_fired(self) -> list[str]:
        """The faults and rare branches that should have occurred in some world, but never did."""
        return [name for name, count in self.fired.items() if not count]


class Standing:
    """The results of one version of the code, in a file with one result per line as JSON."""

    def __init__(self, file: Path) -> None:
        """Reads the results of earlier runs. Skips incomplete lines of an interrupted process, and lines with other content."""
        self._file = file
        text = file.read_bytes() if file.exists() else b""
        self._is_torn = not text.endswith(b"\n") and text != b""
        results: dict[int, PlayedSeed] = {}
        for line in text.split(b"\n"):
            with suppress(msgspec.MsgspecError):
                result = msgspec.json.decode(line, type=PlayedSeed)
                results[result.seed] = result
        self._seeds = set(results)
        self.totals = Totals(results.values())
        """The sums of all results."""

    def missing(self, wanted: range) -> list[int]:
        """Returns the wanted seeds that have no result."""
        return [seed for seed in wanted if seed not in self._seeds]

    def add(self, end: WorldEnd) -> None:
        """Adds a result to the file. Omits the names with the number 0 that the file contains already."""
        result = PlayedSeed.of(end)
        known = self.totals.fired
        fired = {name: count for name, count in result.fired.items() if count or name not in known}
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("ab") as file:
            line = msgspec.json.encode(msgspec.structs.replace(result, fired=fired))
            file.write((b"\n" if self._is_torn else b"") + line + b"\n")
        self._is_torn = False
        self._seeds.add(end.seed)
        self.totals.add(result)
