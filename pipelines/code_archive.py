"""Our code as one archive that Spark carries to its executors: they have the libraries installed, and not this program."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Final

PACKAGES: Final = ("broker", "pipelines", "rocketmq_commitlog")
"""What executors unpickle and import: data sources, and what these need."""


def write_code_archive(path: Path, packages: tuple[str, ...] = PACKAGES) -> None:
    """Writes the sources of these packages; what is compiled or cached stays here."""
    root = Path(__file__).resolve().parent.parent
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in packages:
            for source in sorted((root / package).rglob("*.py")):
                archive.write(source, str(source.relative_to(root)))
