"""Tests that the page's modules import nothing that Pyodide lacks or that would enlarge the page needlessly."""

import subprocess
import sys
from pathlib import Path

from tests.without_modules import without_modules

ROOT = Path(__file__).parents[4]
ABSENT = (
    "billiard", "celery", "greenlet", "grpc", "h2", "isal", "kombu", "pyarrow", "psycopg", "pygments", "pyspark", "redis", "rich",
    "typer", "uvicorn", "waitress",
)  # fmt: skip
PLAY = f"""{without_modules(ABSENT)}
import threading

def refuse(thread):
    raise RuntimeError("the page has no threads")

threading.Thread.start = refuse

from demo.play import entry

entry.start(7)
answer = entry.call('{{"do": "play", "words": ["lose-commit", "place", "wait-60", "deliver-twice", "kill", "restart"]}}')
assert "error" not in answer, answer
assert '"is_consistent": true' in entry.call('{{"do": "state", "language": "zh"}}')
entry.close()
"""


def test_a_session_runs_without_threads_and_without_what_pyodide_lacks() -> None:
    done = subprocess.run([sys.executable, "-c", PLAY], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
