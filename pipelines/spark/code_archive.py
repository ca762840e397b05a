"""Our code as one archive for Spark's executors, which have the libraries installed but not this program."""

from __future__ import annotations

import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

PACKAGES: Final = ("rocketmq_broker", "pipelines", "rocketmq_commitlog")
"""The modules that executors unpickle and import: data sources, and their imports."""


def write_code_archive(path: Path, packages: tuple[str, ...] = PACKAGES) -> None:
    """Writes the sources of these installed packages, without compiled or cached files."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in packages:
            folder = folder_of(package)
            for source in sorted(folder.rglob("*.py")):
                archive.write(source, str(source.relative_to(folder.parent)))


def folder_of(package: str) -> Path:
    """Returns the folder of the package's modules. Raises ModuleNotFoundError."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"no package {package} on the path of this interpreter", name=package)
    return Path(spec.origin).parent
