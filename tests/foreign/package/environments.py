"""Empty environments to install the wheel into, and the interpreters of this machine."""

import re
import sys
from pathlib import Path

from demo.processes import PROJECT_ROOT
from deploy.scripts.build_wheels import pythons, run


def installed(wheel: Path, python: Path, folder: Path, *, extra: str = "") -> Path:
    """The programs of an environment that has the wheel and what it asks for, nothing else."""
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    run(python, "-m", "venv", folder, cwd=folder)
    pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(*pip, "--constraint", unhashed(PROJECT_ROOT / "deploy" / "docker" / "broker.lock", folder), wanted, cwd=folder)
    return folder / "bin"


def other_pythons() -> dict[str, Path]:
    """The interpreters of other versions than this one, by version."""
    own = "{}.{}".format(*sys.version_info[:2])
    return {version: python for version, python in pythons().items() if version != own}


def unhashed(lock: Path, folder: Path) -> Path:
    """The lock's versions alone: pip wants a hash of our own wheel otherwise, and takes no extras in constraints."""
    versions = re.findall(r"^([\w.-]+)(?:\[[\w,.-]+\])?(==\S+)", lock.read_text(), re.MULTILINE)
    (folder / "constraints.txt").write_text("\n".join(map("".join, versions)))
    return folder / "constraints.txt"
