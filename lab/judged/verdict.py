"""Writes a history, and has it judged by Porcupine (github.com/anishathalye/porcupine), which Go fetches and builds."""

import json
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from lab.benchmarks.side_by_side.generator import PROGRAM, build
from lab.judged.operations import JudgedOperation

SOURCE = Path(__file__).with_name("porcupine")
JUDGE = PROGRAM.with_name("porcupine")
_TIMEOUT_S = 3600


@dataclass(frozen=True, slots=True)
class ModelVerdict:
    """The judgement on the objects of one model."""

    objects: int
    operations: int
    unknown: int
    """The number of operations that never complete."""
    refused: list[str]
    """The objects whose history is not linearizable."""
    undecided: list[str]
    """The objects for which Porcupine found no result in time."""

    @property
    def is_accepted(self) -> bool:
        """True if the history of each object is linearizable."""
        return not self.refused and not self.undecided


def judge(history: Iterable[JudgedOperation], home: Path) -> dict[str, ModelVerdict]:
    """Returns the verdict of each model. Writes history.jsonl, and refused.html if a history is refused. Raises CannotBuild."""
    path = home / "history.jsonl"
    home.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(asdict(one)) + "\n" for one in history))
    command = [build(JUDGE, SOURCE), path, home / "refused.html"]
    judged = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=_TIMEOUT_S)
    return {model: ModelVerdict(**verdict) for model, verdict in json.loads(judged.stdout).items()}
