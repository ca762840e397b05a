"""Tests of the modules and threads of the process from which Spark forks its workers."""

import subprocess
import sys
from pathlib import Path

WHAT_THE_DAEMON_HAS = """
import os, sys
from pathlib import Path
import pipelines.sources.spark_workers
print(*sorted(set(sys.argv[1:]) - sys.modules.keys()))
threads = [thread for thread in Path("/proc/self/task").iterdir() if thread.name != str(os.getpid())]
print(*[(thread / "comm").read_text() for thread in threads])
"""


def test_workers_are_forked_with_all_that_tasks_need_and_without_a_thread_that_they_would_lack() -> None:
    """The only thread is jemalloc's, which comes with Arrow. jemalloc restores it in each forked process."""
    needed = ["pyspark.worker", "pyarrow", "adbc_driver_sqlite.dbapi", "rocketmq_commitlog.record_batches"]
    project = Path(__file__).resolve().parents[4]
    done = subprocess.run(
        [sys.executable, "-c", WHAT_THE_DAEMON_HAS, *needed], capture_output=True, text=True, check=True, cwd=project
    )
    missing, threads = done.stdout.split("\n", 1)
    assert missing == ""
    assert set(threads.split()) <= {"jemalloc_bg_thd"}
