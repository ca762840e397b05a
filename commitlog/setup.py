"""The version, which is that of the broker with its record layout. All other metadata is in pyproject.toml."""

import re
from pathlib import Path

from setuptools import setup

BROKER = Path(__file__).parents[1] / "broker" / "rocketmq_broker" / "__init__.py"
(version,) = re.findall(r'__version__ = "(.+)"', BROKER.read_text())
setup(version=version, install_requires=[f"rocketmq-broker=={version}", "pyspark>=4.2", "pyarrow"])
