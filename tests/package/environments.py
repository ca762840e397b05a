"""Empty environments to install the wheel into, and the interpreters of this machine."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from demo.processes import PROJECT_ROOT


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """What the command prints, in an environment without the checkout's settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=cwd, env={**kept, **environment}, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def installed(wheel: Path, python: Path, folder: Path, *, extra: str = "") -> Path:
    """The programs of an environment that has the wheel and what it asks for, nothing else."""
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    run(python, "-m", "venv", folder, cwd=folder)
    pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(*pip, "--constraint", unhashed(PROJECT_ROOT / "docker" / "broker.lock", folder), wanted, cwd=folder)
    return folder / "bin"


def other_pythons() -> dict[str, Path]:
    """Interpreters of other versions from 3.11 on, by version: those on PATH, and the latest that pyenv has installed of each."""
    own = sys.version_info[:2]
    found = {f"3.{minor}": shutil.which(f"python3.{minor}") for minor in range(11, 16) if (3, minor) != own}
    pythons = {version: Path(program) for version, program in found.items() if program and "shims" not in program}
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for program in sorted(
        pyenv.glob("versions/3.*/bin/python"), key=lambda path: [*map(int, re.findall(r"\d+", path.parts[-3]))]
    ):
        major, minor, *_ = map(int, re.findall(r"\d+", program.parts[-3]))
        if (major, minor) != own and minor >= 11:
            pythons[f"{major}.{minor}"] = program
    return pythons


def unhashed(lock: Path, folder: Path) -> Path:
    """The lock's versions alone: pip wants a hash of our own wheel otherwise, and takes no extras in constraints."""
    versions = re.findall(r"^([\w.-]+)(?:\[[\w,.-]+\])?(==\S+)", lock.read_text(), re.MULTILINE)
    (folder / "constraints.txt").write_text("\n".join(map("".join, versions)))
    return folder / "constraints.txt"
