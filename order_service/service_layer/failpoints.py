"""Fails the service on purpose, so that demos and tests can lose a COMMIT without sleeping or guessing.

Off unless the setting FAILPOINTS names one:

    exit-after-local-commit:every=N    the process ends, as by kill -9, after every Nth local commit,
                                       before it sends COMMIT to the broker: check-back must settle the order
"""

import itertools
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from service_runtime.failing.armed_failpoints import exit_at_once

EXIT_AFTER_LOCAL_COMMIT: Final = "exit-after-local-commit"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Failpoints:
    """The active failpoints; safe to use from several threads."""

    exit_after_local_commit_every: int | None = None
    end_process: Callable[[], None] = exit_at_once
    _local_commits: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def after_local_commit(self) -> None:
        """Ends the process if the failpoint is due. Call it after the local commit, before COMMIT is sent to the broker."""
        every = self.exit_after_local_commit_every
        if every is not None and next(self._local_commits) % every == 0:
            logger.warning("failpoint %s: the process ends here", EXIT_AFTER_LOCAL_COMMIT)
            self.end_process()


def parse_failpoints(text: str) -> Failpoints:
    """Parses a setting into failpoints; none if it is empty. Raises ValueError if it cannot be read."""
    if not text.strip():
        return Failpoints()
    name, _, argument = text.strip().partition(":")
    key, _, number = argument.partition("=")
    if name != EXIT_AFTER_LOCAL_COMMIT or key != "every" or not number.isdecimal() or int(number) < 1:
        raise ValueError(f"{text!r} is no failpoint: {EXIT_AFTER_LOCAL_COMMIT}:every=N is, with N from 1")
    return Failpoints(exit_after_local_commit_every=int(number))
