"""The version, which is the broker's: that one holds the record layout. Everything else is in pyproject.toml."""

import re
from pathlib import Path

from setuptools import setup

BROKER = Path(__file__).parents[1] / "broker" / "rocketmq_broker" / "__init__.py"
(version,) = re.findall(r'__version__ = "(.+)"', BROKER.read_text())
setup(version=version, install_requires=[f"rocketmq-broker=={version}", "pyspark>=4.2", "pyarrow"])
