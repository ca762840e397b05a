"""For how long a worker has taken no task although some wait."""

from credit_service.worker.taking import Taking


class Clock:
    def __init__(self) -> None:
        self.now_s = 50.0

    def __call__(self) -> float:
        return self.now_s


def test_a_worker_that_takes_nothing_while_nothing_waits_is_not_to_blame() -> None:
    clock = Clock()
    taking = Taking(now_s=clock)
    for _ in range(10):
        clock.now_s += 60
        taking.look(0)
    assert (taking.tasks, taking.taken_s_ago, taking.none_for_s) == (0, None, 0)


def test_the_time_runs_from_the_first_look_that_found_a_task_waiting() -> None:
    clock = Clock()
    taking = Taking(now_s=clock)
    clock.now_s += 500
    taking.look(3)
    clock.now_s += 20
    taking.look(1)
    clock.now_s += 5
    assert taking.none_for_s == 25


def test_a_task_taken_ends_it_and_the_next_look_begins_again() -> None:
    clock = Clock()
    taking = Taking(now_s=clock)
    taking.look(3)
    clock.now_s += 20
    taking.take()
    assert (taking.tasks, taking.taken_s_ago, taking.none_for_s) == (1, 0, 0)
    clock.now_s += 7
    taking.look(3)
    clock.now_s += 2
    assert (taking.taken_s_ago, taking.none_for_s) == (9, 2)


def test_a_redis_that_does_not_say_is_no_evidence_against_the_worker() -> None:
    clock = Clock()
    taking = Taking(now_s=clock)
    taking.look(3)
    clock.now_s += 20
    taking.look(None)
    assert taking.none_for_s == 0
