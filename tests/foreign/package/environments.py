"""Empty environments to install the wheel into, the interpreters of this machine, and interpreters that a script installs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from demo.processes import PROJECT_ROOT
from deploy.scripts.build_wheels import pythons, run
from tests.one_at_a_time import one_at_a_time


def installed(wheel: Path, python: Path, folder: Path, *, extra: str = "") -> Path:
    """Installs the wheel and its dependencies, and nothing else. Returns the folder of the environment's programs."""
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    run(python, "-m", "venv", folder, cwd=folder)
    pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(*pip, "--constraint", unhashed(PROJECT_ROOT / "deploy" / "docker" / "broker.lock", folder), wanted, cwd=folder)
    return folder / "bin"


def other_pythons() -> dict[str, Path]:
    """Returns the interpreters of Python versions other than the running version, by version."""
    own = "{}.{}".format(*sys.version_info[:2])
    return {version: python for version, python in pythons().items() if version != own}


def unhashed(lock: Path, folder: Path) -> Path:
    """Writes the lock's versions to a constraints file, without hashes and extras. Returns the path of the file.

    With hashes in the file, pip would require a hash of our wheel too.
    """
    (folder / "constraints.txt").write_text("\n".join(map("".join, locked_versions(lock).items())))
    return folder / "constraints.txt"


def locked_versions(lock: Path) -> dict[str, str]:
    """Returns the version of each library in the lock, as `==VERSION`."""
    return dict(re.findall(r"^([\w.-]+)(?:\[[\w,.-]+\])?(==\S+)", lock.read_text(), re.MULTILINE))


def set_up(script: Path, *arguments: str | Path) -> str:
    """Runs a script that installs a Python. Returns its output. Skips the test if the script exits with EX_UNAVAILABLE."""
    with one_at_a_time(script.name):
        done = subprocess.run([script, *arguments], capture_output=True, text=True, timeout=1200, check=False)
    if done.returncode == os.EX_UNAVAILABLE:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout
