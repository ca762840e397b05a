"""Parquet that is replaced as a whole, whenever a run is broken off."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow
import pyarrow.fs
import pyarrow.parquet
import pytest

from pipelines import outputs
from pipelines.errors import UnwritableOutput
from pipelines.judging.classes import Finding
from pipelines.judging.cut_off import CutOff
from pipelines.judging.totals import FindingTotal, Money
from pipelines.outputs import write_outputs
from tests.unit.pipelines.page.rows import row

NAMES = ("findings", "summary")


def write(output: Path | str, as_of_ms: int) -> None:
    """A run that finds one order without a credit, named by the time of the run."""
    lost = row("missing_credit", order_id=f"lost at {as_of_ms}")
    write_outputs([lost], [FindingTotal(Finding.MISSING_CREDIT, 1, (Money("EUR"),))], CutOff(as_of_ms), str(output))


def read(output: Path) -> list[tuple[dict[str, Any], str]]:
    """Of findings and summary the only row, and which run the file says it is of."""
    tables = [pyarrow.parquet.read_table(output / name) for name in NAMES]
    return [(table.to_pylist()[0], table.schema.metadata[b"as_of_ms"].decode()) for table in tables if table.num_rows == 1]


def test_the_next_run_replaces_findings_and_summary(tmp_path: Path) -> None:
    for as_of_ms in (1, 2):
        write(tmp_path / "out", as_of_ms)
    (found, found_by), (total, total_by) = read(tmp_path / "out")
    assert (found["order_id"], found_by) == ("lost at 2", "2")
    assert (total["as_of_ms"], total_by) == (2, "2")
    assert sorted(path.name for path in (tmp_path / "out").rglob("*")) == ["findings", *["part-0.parquet"] * 2, "summary"]


def test_a_run_that_cannot_write_the_second_file_leaves_both_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, 1)
    before, write_table = sorted(tmp_path.rglob("*")), pyarrow.parquet.write_table

    def full(table: pyarrow.Table, place: object) -> None:
        if "meaning" in table.schema.names:
            raise OSError(28, "No space left on device")
        write_table(table, place)

    monkeypatch.setattr(pyarrow.parquet, "write_table", full)
    with pytest.raises(UnwritableOutput, match=f"^output {tmp_path}: No space left on device$"):
        write(tmp_path, 2)
    assert [by for _, by in read(tmp_path)] == ["1", "1"]
    assert sorted(tmp_path.rglob("*")) == before


def test_a_file_url_is_a_path(tmp_path: Path) -> None:
    for as_of_ms in (1, 2):
        write(f"file://{tmp_path}/out", as_of_ms)
    assert [by for _, by in read(tmp_path / "out")] == ["2", "2"]


def test_a_file_system_of_another_kind_gets_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = pyarrow.fs.SubTreeFileSystem(str(tmp_path), pyarrow.fs.LocalFileSystem())
    monkeypatch.setattr(outputs, "FileSystem", SimpleNamespace(from_uri=lambda uri: (elsewhere, uri.partition("://")[2])))
    for as_of_ms in (1, 2):
        write("bucket://out", as_of_ms)
    assert [by for _, by in read(tmp_path / "out")] == ["2", "2"]


KILLED_AT_EACH_STEP = """
import os, signal, sys
from pathlib import Path
from tests.unit.pipelines.test_outputs import read, write

output, steps = Path(sys.argv[1]), ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir")
write(output, 1)
killed = 0
while True:
    child = os.fork()
    if child == 0:
        left = killed

        def at_each_step(event, arguments):
            global left
            if event in steps and str(output) in str(arguments[0]):
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left -= 1

        sys.addaudithook(at_each_step)
        write(output, 2)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    both = read(output)
    print(*(by for _, by in both), status)
    if status == 0:
        break
    killed += 1
    write(output, 1)
"""


def test_a_run_that_is_killed_at_any_step_leaves_two_whole_tables(tmp_path: Path) -> None:
    """Each step is something that is done to a file: opening one, making, renaming, removing."""
    project = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, "-c", KILLED_AT_EACH_STEP, str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=False,
        cwd=project,
    )
    assert done.returncode == 0, done.stderr
    *killed, last = [line.split() for line in done.stdout.splitlines()]
    assert {status for *_, status in killed} == {"9"}
    # Before the first of the two renames, before the second, and after both.
    assert killed[-1][:2] == ["2", "1"]
    assert all(run == ["1", "1"] for *run, _ in killed[:-1])
    assert len(killed) >= 4
    assert last == ["2", "2", "0"]
