"""Which of the two runs a listener."""

from __future__ import annotations

from broker.client.checks.listener_check import is_async
from broker.client.push.listener_runner import ListenerRunner
from broker.client.push.listener_tasks import ListenerTasks
from broker.client.push.listener_threads import ListenerThreads


def runner_of(listener: object, name: str, most_at_a_time: int) -> ListenerRunner:
    """Tasks for an async function, threads for any other."""
    return ListenerTasks(name, most_at_a_time) if is_async(listener) else ListenerThreads(name, most_at_a_time)
