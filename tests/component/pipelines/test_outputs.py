"""Tests that an interrupted run leaves consistent Parquet files, and that only the owner can read the outputs."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
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
from tests.component.pipelines.conftest import ShopDatabases
from tests.unit.pipelines.page.rows import row

PROJECT = Path(__file__).resolve().parents[3]

NAMES = ("findings", "summary")


def write(output: Path | str, as_of_ms: int) -> None:
    """Writes the outputs of a run that finds one order without a credit. The order's id contains the time of the run."""
    lost = row("missing_credit", order_id=f"lost at {as_of_ms}")
    write_outputs([lost], [FindingTotal(Finding.MISSING_CREDIT, 1, (Money("EUR"),))], CutOff(as_of_ms), str(output))


def read(output: Path) -> list[tuple[dict[str, Any], str]]:
    """Returns the only row of findings and of summary, each with the `as_of_ms` in the file's metadata."""
    tables = [pyarrow.parquet.read_table(output / name) for name in NAMES]
    return [(table.to_pylist()[0], table.schema.metadata[b"as_of_ms"].decode()) for table in tables if table.num_rows == 1]


def everything(output: Path) -> list[Path]:
    return sorted(output.rglob("*"))


def as_an_older_version_writes(output: Path) -> None:
    """Writes the outputs of an older version: two folders without links."""
    write(output, 1)
    for name in NAMES:
        found = (output / name).resolve()
        (output / name).unlink()
        shutil.copytree(found, output / name)
    shutil.rmtree(output / ".reconciliation")


@pytest.fixture
def generous_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def open_to_others(folder: Path) -> list[Path]:
    return [path for path in everything(folder) if not path.is_symlink() and path.stat().st_mode & 0o077]


def test_a_class_without_findings_has_amounts_of_zero(tmp_path: Path) -> None:
    write_outputs([], [FindingTotal(Finding.MATCHED, 0, ())], CutOff(1), str(tmp_path))
    (line,) = pyarrow.parquet.read_table(tmp_path / "summary").to_pylist()
    assert [line[name] for name in ("count", "order_cents", "credit_cents", "at_stake_cents")] == [0, 0, 0, 0]


@pytest.mark.usefixtures("generous_umask")
def test_findings_name_customers_and_are_for_their_owner_only(tmp_path: Path) -> None:
    write(tmp_path / "out", 1)
    assert open_to_others(tmp_path) == []


@pytest.mark.usefixtures("generous_umask")
def test_whatever_a_command_writes_is_for_its_owner_only(shop: ShopDatabases, tmp_path: Path) -> None:
    shop.add_orders(["a", "b"])
    made = tmp_path / "made"
    options = ["--engine", "sqlite", "--report", "made/page.html", "--breaks", "made/breaks.db", "--output", "made/out"]
    command = [sys.executable, "-m", "pipelines", "reconcile", "--grace-seconds", "0", *options]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), **shop.environment}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert {"page.html", "breaks.db", "findings"} <= {path.name for path in everything(made)}
    assert [*open_to_others(made), *([made] if made.stat().st_mode & 0o077 else [])] == []


def test_the_next_run_replaces_findings_and_summary(tmp_path: Path) -> None:
    for as_of_ms in (1, 2):
        write(tmp_path / "out", as_of_ms)
    (found, found_by), (total, total_by) = read(tmp_path / "out")
    assert (found["order_id"], found_by) == ("lost at 2", "2")
    assert (total["as_of_ms"], total_by) == (2, "2")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [".reconciliation", "findings", "summary"]
    assert [path.name for path in (tmp_path / "out" / "findings").iterdir()] == ["part-0.parquet"]


def test_the_runs_before_the_last_but_one_are_removed(tmp_path: Path) -> None:
    for as_of_ms in range(5):
        write(tmp_path, as_of_ms)
    assert len(list((tmp_path / ".reconciliation").glob("run-*"))) == 2


def test_who_reads_while_the_next_run_ends_reads_on(tmp_path: Path) -> None:
    write(tmp_path, 1)
    findings = (tmp_path / "findings").resolve()
    write(tmp_path, 2)
    assert pyarrow.parquet.read_table(findings).schema.metadata[b"as_of_ms"] == b"1"


def test_a_copy_of_the_folder_is_whole(tmp_path: Path) -> None:
    write(tmp_path / "out", 1)
    (tmp_path / "out").rename(tmp_path / "moved")
    shutil.copytree(tmp_path / "moved", tmp_path / "copied", symlinks=True)
    assert [by for _, by in read(tmp_path / "copied")] == ["1", "1"]


def test_a_run_that_cannot_write_the_second_file_leaves_both_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, 1)
    before, write_table = everything(tmp_path), pyarrow.parquet.write_table

    def full(table: pyarrow.Table, place: object) -> None:
        if "meaning" in table.schema.names:
            raise OSError(28, "No space left on device")
        write_table(table, place)

    monkeypatch.setattr(pyarrow.parquet, "write_table", full)
    with pytest.raises(UnwritableOutput, match=f"^output {tmp_path}: No space left on device$"):
        write(tmp_path, 2)
    assert [by for _, by in read(tmp_path)] == ["1", "1"]
    assert everything(tmp_path) == before


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
import os, shutil, signal, sys
from pathlib import Path
from tests.component.pipelines.test_outputs import as_an_older_version_writes, read, write

output, is_older = Path(sys.argv[1]), sys.argv[2] == "older"
steps = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.symlink", "os.link", "os.chmod", "os.utime", "os.listdir",
         "os.scandir", "ctypes.dlsym", "shutil.rmtree", "shutil.copytree")
killed = 0
while True:
    shutil.rmtree(output, ignore_errors=True)
    (as_an_older_version_writes if is_older else write)(output, *([] if is_older else [1]))
    child = os.fork()
    if child == 0:
        left = killed

        def at_each_step(event, arguments):
            global left
            if event == "ctypes.dlsym" or (event in steps and arguments and str(output) in str(arguments[0])):
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left -= 1

        sys.addaudithook(at_each_step)
        write(output, 2)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print(*(by for _, by in read(output)), status)
    write(output, 3)
    assert [by for _, by in read(output)] == ["3", "3"]
    if status == 0:
        break
    killed += 1
"""


@pytest.mark.parametrize("written_by", ["this version", "older"])
def test_a_run_that_is_killed_at_any_step_leaves_two_tables_of_one_run(tmp_path: Path, written_by: str) -> None:
    """A kill before any operation on a file or folder leaves findings and a summary of the same run."""
    command = [sys.executable, "-c", KILLED_AT_EACH_STEP, str(tmp_path / "out"), written_by]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=PROJECT)
    assert done.returncode == 0, done.stderr
    *killed, last = [line.split() for line in done.stdout.splitlines()]
    assert {status for *_, status in killed} == {"9"}
    runs = [run for *run, _ in killed]
    assert {tuple(run) for run in runs} == {("1", "1"), ("2", "2")}
    assert runs == sorted(runs)
    assert last == ["2", "2", "0"]
