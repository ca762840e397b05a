"""The version, which is that of the broker and its client. All other metadata is in pyproject.toml."""

import re
from pathlib import Path

from setuptools import setup

BROKER = Path(__file__).parents[1] / "broker" / "rocketmq_broker" / "__init__.py"
(version,) = re.findall(r'__version__ = "(.+)"', BROKER.read_text())
# A broker for FastStream is built on modules that FastStream may change in any release.
setup(version=version, install_requires=[f"rocketmq-broker=={version}", "faststream==0.7.8"])
