"""Computes the version of the simulated code. Results are valid for one version only."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

PACKAGES: Final = (
    "broker/rocketmq_broker", "credit_service", "inventory_service", "order_messages", "order_service", "pipelines",
    "service_runtime", "lab/simulation",
)  # fmt: skip
_SUFFIXES: Final = {".py", ".sql"}


def code_version(root: Path, packages: Sequence[str] = PACKAGES) -> str:
    """Returns twelve characters of a digest of the packages' sources, the locked dependencies and Python's version."""
    digest = hashlib.sha256(sys.version.encode())
    files = [path for package in packages for path in (root / package).rglob("*") if path.suffix in _SUFFIXES]
    for path in sorted([*files, *root.glob("requirements.lock")]):
        digest.update(f"\0{path.relative_to(root).as_posix()}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
