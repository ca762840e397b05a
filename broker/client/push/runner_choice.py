"""Which of the two runs a listener."""

from __future__ import annotations

from broker.client.checks.listener_check import is_async
from broker.client.push.listener_runner import ListenerRunner
from broker.client.push.listener_tasks import ListenerTasks
from broker.client.push.listener_threads import ListenerThreads
from broker.world import current_world


def runner_of(listener: object, name: str, most_at_a_time: int) -> ListenerRunner:
    """Tasks for an async function, threads for any other, unless the world has none."""
    needs_thread = not is_async(listener) and current_world().listeners_need_threads
    return ListenerThreads(name, most_at_a_time) if needs_thread else ListenerTasks(name, most_at_a_time)
