"""Faults of a run: processes are killed (SIGKILL) and started again, or stand still for a while (SIGSTOP)."""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from lab.judged.brokers import Victim
from lab.judged.observations import Observations

_BETWEEN_S = (0.5, 4)
_DOWN_S = (0, 2)
_STOPPED_S = (0.5, 5)


@dataclass(frozen=True)
class JudgedFaults:
    """Faults of several rows of victims at the same time. In a row, one follows the other."""

    rows: Sequence[Mapping[str, Victim]]
    observations: Observations
    chance: random.Random
    played: Counter[str] = field(default_factory=Counter)
    """The number of faults by victim and signal."""

    def run(self) -> None:
        """Plays faults until the run is over. All processes then run."""
        with ThreadPoolExecutor(len(self.rows)) as pool:
            for row in [pool.submit(self._play, row) for row in self.rows]:
                row.result()

    def _play(self, row: Mapping[str, Victim]) -> None:
        while not self.observations.is_over.wait(self.chance.uniform(*_BETWEEN_S)):
            name = self.chance.choice(sorted(row))
            fault = self.chance.choice((self._kill, self._stop))
            self.played[f"{name} {fault(row[name])}"] += 1

    def _kill(self, victim: Victim) -> str:
        victim.kill()
        time.sleep(self.chance.uniform(*_DOWN_S))
        victim.start()
        return "SIGKILL"

    def _stop(self, victim: Victim) -> str:
        os.kill(victim.pid(), signal.SIGSTOP)
        time.sleep(self.chance.uniform(*_STOPPED_S))
        os.kill(victim.pid(), signal.SIGCONT)
        return "SIGSTOP"
