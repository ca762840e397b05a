"""Checks whether work is possible now. A thread checks each dependency, at most once a second.

Callers wait at most two seconds, and share the result of a running check. A check that hangs is not started again, and counts as
failed until it ends.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from flask import Response

from service_runtime.http.health import NOT_READY, Word, word
from service_runtime.http.problems import problem_response

WITHIN_S: Final = 2.0
FOR_S: Final = 1.0


class Needed(Protocol):
    """A dependency of the service, such as a database or a broker."""

    def why_unready(self) -> str | None:
        """Returns the reason why the dependency cannot be used now, in one line; None if it can."""


@dataclass(frozen=True, slots=True)
class Need:
    """A dependency of the service, and the advice for operators while it is unavailable."""

    name: str
    """The name in the health report, such as `database` or `broker`."""
    needed: Needed
    to_do: str
    """A sentence that advises operators while the dependency is unavailable."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A dependency that is unavailable, the reason, and what to do about it."""

    name: str
    why: str
    to_do: str

    def __str__(self) -> str:
        return f"{self.name}: {self.why}. {self.to_do}"


class Readiness:
    """Checks whether all dependencies are available now. Thread-safe."""

    def __init__(
        self,
        needs: Sequence[Need],
        *,
        steady_s: Callable[[], float],
        within_s: float = WITHIN_S,
        for_s: float = FOR_S,
    ) -> None:
        """A result is cached for `for_s` seconds. Callers wait at most `within_s` seconds for one."""
        self._questions = [_Question(need, for_s, steady_s) for need in needs]
        self._within_s = within_s
        self._steady_s = steady_s

    def missing(self) -> tuple[Missing, ...]:
        """Returns the unavailable dependencies; empty if work is possible."""
        for question in self._questions:
            question.ask()
        end_s = self._steady_s() + self._within_s
        answers = [(question.need, question.answer(end_s - self._steady_s(), self._within_s)) for question in self._questions]
        return tuple(Missing(need.name, why, need.to_do) for need, why in answers if why is not None)


def not_ready(missing: Sequence[Missing]) -> Response:
    """Returns the 503 response that names the unavailable dependencies, with advice."""
    errors = [{"field": one.name, "message": one.why} for one in missing]
    return problem_response(503, NOT_READY, " ".join(map(str, missing)), errors)


def word_of(name: str, missing: Sequence[Missing]) -> Word:
    """Returns the status of the dependency with this name, for the health report."""
    return word(all(one.name != name for one in missing))


class _Question:
    def __init__(self, need: Need, for_s: float, steady_s: Callable[[], float]) -> None:
        self.need = need
        self._for_s = for_s
        self._steady_s = steady_s
        self._lock = threading.Lock()
        self._is_answered = threading.Event()
        self._is_asked = False
        self._answered_s: float | None = None
        self._why: str | None = None

    def ask(self) -> None:
        """Starts a check, unless one is running or the last result is still valid."""
        with self._lock:
            still_counts = self._answered_s is not None and self._steady_s() - self._answered_s < self._for_s
            if self._is_asked or still_counts:
                return
            self._is_asked = True
            self._is_answered.clear()
        threading.Thread(target=self._find_out, name=f"ready-{self.need.name}", daemon=True).start()

    def answer(self, wait_s: float, within_s: float) -> str | None:
        if not self._is_answered.wait(max(0.0, wait_s)):
            return f"no answer within {within_s:g} s"
        return self._why

    def _find_out(self) -> None:
        try:
            why = self.need.needed.why_unready()
        except Exception as error:
            why = f"the check failed: {error}"
        with self._lock:
            self._why, self._answered_s, self._is_asked = why, self._steady_s(), False
            self._is_answered.set()
