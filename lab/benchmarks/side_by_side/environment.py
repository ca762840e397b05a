"""Describes the environment in which a result was measured: interpreter, kernel, compilers."""

import importlib.util
import os
import platform
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from lab.benchmarks.side_by_side.brokers import APACHE_VERSION
from lab.benchmarks.side_by_side.generator import find_go
from lab.benchmarks.side_by_side.usage import load_average

_ON_THE_HOT_PATH = "rocketmq_broker.message.record"
_CPU_INFO = Path("/proc/cpuinfo")
_TIMEOUT_S = 20


def environment() -> dict[str, str]:
    """Returns the properties of the environment, keyed by name."""
    return {
        "broker": f"{'compiled' if is_compiled(_ON_THE_HOT_PATH) else 'interpreted'}, beside Apache RocketMQ {APACHE_VERSION}",
        "Python": f"{platform.python_version()} ({Path(sys.executable).resolve()}, {platform.python_compiler()})",
        "Java": _first_line(["java", "-version"]),
        "Go": _first_line([find_go() or "go", "version"]),
        "machine": f"{os.cpu_count()} processors ({_processor()}), {platform.platform()}",
        "load average at the start": f"{load_average():.1f}",
    }


def is_compiled(module: str) -> bool:
    """Returns True if the module is a compiled extension."""
    spec = importlib.util.find_spec(module)
    return spec is not None and spec.origin is not None and spec.origin.endswith(tuple(EXTENSION_SUFFIXES))


def _first_line(command: list[str]) -> str:
    try:
        said = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=_TIMEOUT_S).stdout
    except OSError:
        return "not found"
    return said.strip().partition("\n")[0]


def _processor() -> str:
    if _CPU_INFO.exists():
        for line in _CPU_INFO.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"
