"""The choice of a listener's runner: tasks for async functions, threads for all others."""

from __future__ import annotations

from rocketmq_broker.client.checks.listener_check import is_async
from rocketmq_broker.client.push.listener_runner import ListenerRunner
from rocketmq_broker.client.push.listener_tasks import ListenerTasks
from rocketmq_broker.client.push.listener_threads import ListenerThreads
from rocketmq_broker.world import World


class Runners:
    """A runner of several listeners: functions in the threads of one pool, async functions as tasks, a bounded number of each."""

    def __init__(self, name: str, most_at_a_time: int, world: World) -> None:
        """`name` is that of the threads and the tasks. In a world without threads every listener is a task."""
        self._tasks: ListenerRunner = ListenerTasks(name, most_at_a_time)
        self._threads: ListenerRunner = (
            ListenerThreads(name, most_at_a_time, world.watch)
            if world.run_function is None
            else ListenerTasks(name, most_at_a_time, world.run_function)
        )

    def of(self, listener: object) -> ListenerRunner:
        """Returns the runner of this listener."""
        return self._tasks if is_async(listener) else self._threads

    async def stop(self, timeout_s: float) -> None:
        """Starts no further call, and waits up to `timeout_s` for running ones of each kind."""
        for runner in (self._threads, self._tasks):
            await runner.stop(timeout_s)


def runner_of(listener: object, name: str, most_at_a_time: int, world: World) -> ListenerRunner:
    """Returns the runner of a single listener."""
    return Runners(name, most_at_a_time, world).of(listener)
