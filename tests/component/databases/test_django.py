"""Tests of barrier, settle and once with Django's ORM. They run in another process, because Django can be set up only once."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("django_program.py")


PLAYS = (
    "work_behind_the_barrier_is_committed_with_its_row",
    "work_that_raises_leaves_nothing_and_is_rolled_back_for_good",
    "a_pending_transaction_is_unknown_until_it_is_concluded_once",
    "a_message_that_comes_twice_is_consumed_once_by_each_consumer",
    "messages_wait_in_the_inbox_and_one_that_fails_delays_nobody",
    "the_inbox_parks_and_retries_and_takes_messages_of_a_transaction",
    "messages_of_an_outbox_are_removed_when_they_are_done_and_parked_ones_are_dismissed",
    "a_message_that_kills_its_process_is_recorded_before_it_is_tried_alone",
    "a_barrier_inside_another_transaction_is_refused",
    "another_violated_constraint_is_no_duplicate",
    "the_models_need_no_further_migration",
)


def test_django(database_url: str) -> None:
    """Each test in the program passes on empty tables. If a test fails, the traceback names it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "DATABASE": database_url}
    done = subprocess.run([sys.executable, PROGRAM, *PLAYS], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
