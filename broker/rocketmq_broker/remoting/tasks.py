"""Groups of background tasks that their owner starts and stops."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final, Generic, TypeVar

from rocketmq_broker.remoting.alarm import Alarm

logger = logging.getLogger(__name__)

T = TypeVar("T")

_END_WITHIN_S: Final = 2.0
_AFTER_FAILURE_S: Final = 1.0


class Tasks:
    """Background tasks. `stop` ends all tasks. Do not start tasks after `stop`.

    An error in a task is logged and affects no other task.
    """

    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[Any], None] = {}
        """The tasks in the order in which they were started.

        They end in a reproducible order, so that simulations can be replayed.
        """
        self._timers: list[RepeatedCall] = []

    def start(self, name: str, work: Coroutine[Any, Any, T], *, is_awaited: bool = False) -> asyncio.Task[T]:
        """Starts the work in a task, and returns the task. Logs its error unless `is_awaited`."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)
        task.add_done_callback(_note if is_awaited else _log)
        return task

    def every(self, seconds: float, name: str, action: Callable[[], object]) -> None:
        """Calls the action repeatedly, first after `seconds`, and then `seconds` after each call has returned."""
        self._timers.append(RepeatedCall(name, seconds, _Attempts(name, action, seconds)))

    def when_due(
        self,
        name: str,
        action: Callable[[], float | None],
        alarm: Alarm,
        *,
        rest_s: float,
        due_s: Callable[[], float | None] | None = None,
    ) -> None:
        """Calls the action repeatedly. The action returns the number of seconds until its next call.

        If the action returns None, the next call starts when the alarm rings. The alarm also starts a call early. At least
        `rest_s` seconds pass between two calls. If the action fails, it is called again after 1 s.

        If `due_s` is given, it is called after `rest_s` seconds and returns the number of seconds left to wait. This prevents
        unnecessary calls if the work is already done.
        """
        self.start(name, _repeat_when_due(_Attempts(name, action, _AFTER_FAILURE_S), alarm, rest_s, due_s))

    async def settle(self, timeout_s: float) -> None:
        """Waits up to `timeout_s` seconds for all tasks to end. Does not cancel them."""
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=timeout_s)

    async def stop(self) -> None:
        """Cancels all running tasks, and waits until they have ended. Logs an error for each task that does not end within 2 s.

        One of the tasks may call this method. That task is not cancelled.
        """
        for timer in self._timers:
            timer.stop()
        self._timers.clear()
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        if tasks:
            _, unending = await asyncio.wait(tasks, timeout=_END_WITHIN_S)
            for task in unending:
                logger.error("%s did not end within %g s", task.get_name(), _END_WITHIN_S)


def _note(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()


def _log(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("%s failed", task.get_name(), exc_info=error)


class _Attempts(Generic[T]):
    """Calls an action, and logs its errors. An OSError that occurs repeatedly is logged only once."""

    def __init__(self, name: str, action: Callable[[], T], again_after_s: float) -> None:
        self._name = name
        self._action = action
        self._again_after_s = again_after_s
        self._complaint = ""
        self.has_failed = False
        """True if the latest call failed."""

    def __call__(self, *, otherwise: T) -> T:
        """Returns the action's result, or `otherwise` if it failed."""
        self.has_failed = True
        try:
            result = self._action()
        except OSError as error:
            # For a full disk, for example, the error's text is sufficient without a traceback.
            if str(error) != self._complaint:
                self._complaint = str(error)
                logger.error("%s failed, retrying every %g s: %s", self._name, self._again_after_s, error)
            return otherwise
        except Exception:
            logger.exception("%s failed, retrying in %g s", self._name, self._again_after_s)
            return otherwise
        self.has_failed, self._complaint = False, ""
        return result


class RepeatedCall:
    """Calls an action repeatedly with a timer. A task would need one more iteration of the event loop for each call."""

    def __init__(self, name: str, seconds: float, attempt: _Attempts[object]) -> None:
        self.name = name
        self.seconds = seconds
        self._attempt = attempt
        self._loop = asyncio.get_running_loop()
        self._next = self._loop.call_later(seconds, self._call)
        self._is_stopped = False

    def stop(self) -> None:
        """Stops the calls."""
        self._is_stopped = True
        self._next.cancel()

    def act(self) -> None:
        """Calls the action once. Logs its error."""
        self._attempt(otherwise=None)

    def _call(self) -> None:
        self.act()
        if not self._is_stopped:
            self._next = self._loop.call_later(self.seconds, self._call)


async def _repeat_when_due(
    attempt: _Attempts[float | None], alarm: Alarm, rest_s: float, due_s: Callable[[], float | None] | None
) -> None:
    while True:
        wait_s = attempt(otherwise=_AFTER_FAILURE_S)
        await asyncio.sleep(rest_s)
        if wait_s is not None:
            wait_s -= rest_s
            if due_s is not None and wait_s > 0 and not attempt.has_failed:
                wait_s = due_s()
        if wait_s is None or wait_s > 0:
            await alarm.wait(wait_s)
