"""Each change that docs/tour.md proposes makes the test that it names fail."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.component.test_tour import ROOT, Stop, each_stop


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copies the checkout, so that files may be changed. The copy shares its .venv."""
    copy = tmp_path_factory.mktemp("tour") / "checkout"
    left_out = shutil.ignore_patterns(".git", ".venv", "build", "data", "dist", "__pycache__", ".*_cache", "node_modules")
    shutil.copytree(ROOT, copy, ignore=left_out, symlinks=True)
    (copy / ".venv").symlink_to(ROOT / ".venv")
    return copy


def run(checkout: Path, test: str) -> subprocess.CompletedProcess[str]:
    python = checkout / ".venv" / "bin" / "python"
    command = [python, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly", test]
    environment = {**os.environ, "PYTHONPATH": ""}  # a Spark session of this process left the first checkout's folders there
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, timeout=240, check=False)


@pytest.mark.slow
@each_stop
def test_each_change_makes_its_test_fail(stop: Stop, checkout: Path) -> None:
    path = checkout / stop.path
    source = path.read_text()
    path.write_text(source.replace(stop.before, stop.after))
    try:
        done = run(checkout, stop.test)
    finally:
        path.write_text(source)
    assert done.returncode == 1, f"{sys.executable}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    assert "1 failed" in done.stdout, done.stdout[-2000:]
