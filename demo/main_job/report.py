"""The report on a run of the demo, in sentences and tables."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from demo.half_messages import CountedHalfMessages, Ending, Loss
from demo.orders import OrderAnswer, PlacingOutcome, busiest_second

WHERE_TO_GO_ON = (
    "What next? Watch it in a browser, and cause faults by button: make up. "
    "Lose one COMMIT yourself and follow each step: tutorials/lose-a-commit/README.md. "
    "Look up the terms: docs/glossary.md. Keep a run's databases, commit log and logs: make demo DEMO='--keep data/demo'."
)


def orders_report(answers: Sequence[OrderAnswer], seconds: float, *, has_kills: bool) -> list[str]:
    """Returns sentences about the number of orders, their rate, and repeated requests."""
    placed = sum(answer.outcome is PlacingOutcome.PLACED for answer in answers)
    lines = [
        f"{placed} orders placed and {len(answers) - placed} refused in {seconds:.1f} s: {placed / seconds:.0f} orders/s"
        f"{' with all restarts' if has_kills else ''}, {busiest_second(answers)} in the busiest second."
    ]
    asked_again = [answer for answer in answers if answer.attempts > 1]
    if asked_again:
        requests = sum(answer.attempts for answer in answers)
        lines.append(
            f"{len(asked_again)} of the {len(answers)} customers repeated their request, {requests} requests in all: the order "
            "service or the broker was down, or died before it answered. They used the same Idempotency-Key, so that no order "
            "was placed twice."
        )
    return lines


def deaths_report(deaths: int, every: int) -> str:
    """Returns a sentence that states how often the order service exited before COMMIT, and why."""
    return (
        f"The order service died {_times(deaths)} between local commit and COMMIT: "
        f"the demo makes it die at every {every}th local commit."
    )


def half_messages_table(half_messages: CountedHalfMessages) -> Table:
    """Returns a table of the half messages by outcome, with the total."""
    table = Table(
        title=f"This run left {half_messages.count} half messages in the commit log, one for each attempt to place an order",
        title_justify="left",
        show_footer=True,
    )
    table.add_column("count", footer=str(half_messages.count), justify="right")
    table.add_column("how they ended", footer=f"in all; the broker committed {half_messages.committed} of them")
    for ending in Ending:
        if count := half_messages.by_ending[ending]:
            table.add_row(str(count), ending.value)
    return table


def losses_report(half_messages: CountedHalfMessages) -> str | None:
    """Returns sentences about the lost COMMITs and the reasons, or None if no COMMIT was lost."""
    by_loss, committed = half_messages.by_loss, half_messages.committed
    died, killed, unexplained = (by_loss[loss] for loss in (Loss.ORDER_SERVICE_DIED, Loss.BROKER_KILLED, Loss.UNEXPLAINED))
    sentences = []
    if lost := died + killed:
        reasons = ", ".join(
            f"{by_loss[loss]} {loss.value}" for loss in (Loss.ORDER_SERVICE_DIED, Loss.BROKER_KILLED) if by_loss[loss]
        )
        sentences.append(f"{lost} of {committed} COMMITs were lost on the way: {reasons}.")
    if died:
        sentences.append(f"A message sent after the local commit would have been lost in those {died} cases, unnoticed.")
    if killed:
        sentences.append(f"In those {killed} cases such a sender would have had to store the message until the broker was back.")
    if unexplained:
        sentences.append(f"{unexplained} of {committed} COMMITs arrived after the check-back, or were lost without a kill.")
    if sentences:
        sentences.append(
            "A check-back found each of these orders in the order database, and the broker committed its half message."
        )
    return " ".join(sentences) or None


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


@contextmanager
def counting(console: Console, what: str, total: int) -> Iterator[Callable[[int, int], None]]:
    """Shows a progress bar during the block. Yields a function that takes the current count and the total."""
    columns = (TextColumn("{task.description:16}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(what, total=total)
        yield lambda completed, total: progress.update(task, completed=completed, total=total)
