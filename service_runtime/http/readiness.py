"""Checks whether work is possible now. Each dependency is checked in a thread, at most once a second.

Callers wait at most two seconds, and share the result of a running check. A hanging check counts as failed until it ends, and no
second check of the dependency is started meanwhile.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Final, Protocol

from flask import Flask, Response, request

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
        """A result is cached for `for_s` seconds. Callers wait at most `within_s` seconds for a result."""
        self._questions = [_Question(need, for_s, steady_s) for need in needs]
        self._within_s = within_s

    def missing(self) -> tuple[Missing, ...]:
        """Returns the unavailable dependencies; empty if work is possible."""
        answers = [(question.need, question.ask()) for question in self._questions]
        wait([answer for _, answer in answers], self._within_s)
        late = f"no answer within {self._within_s:g} s"
        whys = [(need, answer.result() if answer.done() else late) for need, answer in answers]
        return tuple(Missing(need.name, why, need.to_do) for need, why in whys if why is not None)


_STOPPING: Final = (Missing("process", "it is stopping", "Send requests to another instance."),)


def unready_while_stopping(app: Flask, stopping: threading.Event) -> None:
    """Makes /readyz return 503 once the event is set, so that a balancer sends no more requests to this instance."""

    def refuse() -> Response | None:
        return not_ready(_STOPPING) if stopping.is_set() and request.path == "/readyz" else None

    app.before_request(refuse)


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
        self._answer: Future[str | None] | None = None
        self._answered_s = 0.0

    def ask(self) -> Future[str | None]:
        """Returns the future of the running check, or of the last check if its result is still valid.

        Otherwise starts a check, and returns its future.
        """
        with self._lock:
            answer = self._answer
            if answer is None or (answer.done() and self._steady_s() - self._answered_s >= self._for_s):
                self._answer = answer = Future()
                threading.Thread(target=self._find_out, args=[answer], name=f"ready-{self.need.name}", daemon=True).start()
            return answer

    def _find_out(self, answer: Future[str | None]) -> None:
        try:
            why = self.need.needed.why_unready()
        except Exception as error:
            why = f"the check failed: {error}"
        self._answered_s = self._steady_s()
        answer.set_result(why)
