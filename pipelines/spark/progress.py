"""Shows Spark's progress as the number of finished tasks and of all known tasks."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import StatusTracker
from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

REFRESH_S = 0.25


@contextmanager
def shown_step(console: Console, text: str) -> Iterator[None]:
    """Shows the current step during the block, as a spinner on a terminal and as a line otherwise."""
    if not console.is_terminal:
        console.print(f"{text} …")
        yield
        return
    with console.status(f"{text} …"):
        yield


@contextmanager
def shown_tasks(console: Console, spark: SparkSession, text: str) -> Iterator[None]:
    """Shows a progress bar of Spark's tasks during the block."""
    if not console.is_terminal:
        console.print(f"{text} …")
        yield
        return
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("tasks"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    ) as progress:
        over = threading.Event()
        watcher = threading.Thread(
            target=_watch, args=(progress, progress.add_task(text, total=None), spark.sparkContext.statusTracker(), over)
        )
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()


def _watch(progress: Progress, bar: TaskID, tracker: StatusTracker, over: threading.Event) -> None:
    counts: dict[int, tuple[int, int]] = {}
    while not over.wait(REFRESH_S):
        for stage_id in tracker.getActiveStageIds():
            if stage := tracker.getStageInfo(stage_id):
                counts[stage_id] = (stage.numCompletedTasks, stage.numTasks)
        active = set(tracker.getActiveStageIds())
        done = sum(completed if stage_id in active else tasks for stage_id, (completed, tasks) in counts.items())
        progress.update(bar, completed=done, total=sum(tasks for _, tasks in counts.values()) or None)
