"""Tests of the modules that a command imports at its start, because each import delays every run."""

import subprocess
import sys
from pathlib import Path

RECONCILE_STARTS = """
import sys
from pipelines.commands.command_line import application
from pipelines.commands.arguments import BooksOptions
BooksOptions("sqlite:///orders.db", "sqlite:///credits.db").books()
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_books_in_sqlite_wait_for_no_library_of_services_and_clients() -> None:
    project = Path(__file__).resolve().parents[3]
    done = subprocess.run([sys.executable, "-c", RECONCILE_STARTS], capture_output=True, text=True, check=True, cwd=project)
    imported = set(done.stdout.split())
    assert {"pyspark", "pyarrow", "service_runtime"} <= imported
    assert imported & {"sqlalchemy", "pydantic", "psycopg", "asyncio", "httpx", "flask"} == set()
