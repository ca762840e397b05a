"""What runs which listener: tasks for async functions, threads for all others."""

from __future__ import annotations

from rocketmq_broker.client.checks.listener_check import is_async
from rocketmq_broker.client.push.listener_runner import ListenerRunner
from rocketmq_broker.client.push.listener_tasks import ListenerTasks
from rocketmq_broker.client.push.listener_threads import ListenerThreads
from rocketmq_broker.world import World


class Runners:
    """Runs several listeners: functions in the threads of one pool, async functions as tasks, a bounded number of each."""

    def __init__(self, name: str, most_at_a_time: int, world: World) -> None:
        """`name` is that of the threads and the tasks. In a world without threads everything is a task."""
        self._tasks: ListenerRunner = ListenerTasks(name, most_at_a_time)
        self._threads: ListenerRunner = ListenerThreads(name, most_at_a_time, world.watch) if world.has_threads else self._tasks

    def of(self, listener: object) -> ListenerRunner:
        """What runs this one."""
        return self._tasks if is_async(listener) else self._threads

    async def stop(self, timeout_s: float) -> None:
        """Begins no further call, and waits at most that long for those that run, of each kind."""
        for runner in (self._threads, self._tasks):
            await runner.stop(timeout_s)


def runner_of(listener: object, name: str, most_at_a_time: int, world: World) -> ListenerRunner:
    """What runs a single listener."""
    return Runners(name, most_at_a_time, world).of(listener)
