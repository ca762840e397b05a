"""Tests that each module of the three wheels can be imported on systems that lack features of Linux."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]
PROGRAM: Final = Path(__file__).with_name("imported_without.py")


def test_no_module_needs_at_its_import_what_another_system_lacks() -> None:
    done = subprocess.run(
        [sys.executable, PROGRAM], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=280
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["modules"] >= 600
    assert len(told["tried"]) >= 25
    assert told["failed"] == {}


def test_a_module_that_needs_it_is_found(tmp_path: Path) -> None:
    (tmp_path / "needy.py").write_text("import os\nimport fcntl\nSYNC = os.fdatasync\n")
    command = [sys.executable, PROGRAM, "needy"]
    done = subprocess.run(command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=60)
    failed = json.loads(done.stdout)["failed"]
    assert failed.keys() == {"fcntl", "os.fdatasync", "all of them"}
    assert failed["fcntl"] == {"needy": "ModuleNotFoundError: import of fcntl halted; None in sys.modules"}
