"""Builds sdist and wheel with setuptools; with ROCKETMQ_BROKER_COMPILED=1 the hot modules of the wheel are compiled by mypyc."""

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
"""mypyc, which comes with mypy, and what it has to know of the libraries that the compiled modules use."""

prepare_metadata_for_build_editable = build_meta.prepare_metadata_for_build_editable
prepare_metadata_for_build_wheel = build_meta.prepare_metadata_for_build_wheel


def get_requires_for_build_wheel(config_settings: Mapping[str, str] | None = None) -> list[str]:
    """What has to be installed to build a wheel (PEP 517)."""
    compiler = COMPILER if is_compiled_build() else []
    return [*build_meta.get_requires_for_build_wheel(config_settings), *compiler]
