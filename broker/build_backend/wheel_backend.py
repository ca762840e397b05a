"""Builds the sdist and the wheel with setuptools.

With ROCKETMQ_BROKER_COMPILED=1, mypyc compiles the hot modules of the wheel.
"""

import sys
from collections.abc import Mapping

from compiled_modules import is_compiled_build
from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

COMPILER = ["mypy>=2.4,<3", "msgspec", "types-pyyaml"]
"""The packages that a compiled build requires: mypy (which contains mypyc) and libraries that the compiled modules use."""

if sys.implementation.name != "cpython":
    sys.exit("rocketmq-broker requires CPython 3.11 or newer: msgspec, which reads its messages, runs on CPython alone")

prepare_metadata_for_build_editable = build_meta.prepare_metadata_for_build_editable
prepare_metadata_for_build_wheel = build_meta.prepare_metadata_for_build_wheel


def get_requires_for_build_wheel(config_settings: Mapping[str, str] | None = None) -> list[str]:
    """Returns the packages that must be installed to build a wheel (PEP 517)."""
    compiler = COMPILER if is_compiled_build() else []
    return [*build_meta.get_requires_for_build_wheel(config_settings), *compiler]
