"""Maps each planted bug to one test of the project that fails with the bug, or to None. Other tests may fail too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NOTICED_BY: Final[Mapping[str, str | None]] = {
    "second-commit-accepted": ("tests/unit/server/transactions/test_check_service.py::test_the_answer_to_a_check_decides_once"),
    "op-message-first": (
        "tests/unit/server/transactions/test_states.py::"
        "test_each_verb_leads_a_pending_transaction_where_the_table_says_and_appends_what_it_says"
    ),
    "taken-back-and-forgotten": (
        "tests/unit/transaction/test_pending.py::test_a_decision_is_taken_back_if_it_did_not_reach_the_disk"
    ),
    "closed-before-stored": (
        "tests/unit/server/transactions/test_transactional_messages.py::"
        "test_a_store_that_refuses_writes_refuses_the_decision_and_keeps_the_transaction"
    ),
    "pull-offset-committed": (
        "tests/unit/server/pulling/test_pull_processor.py::test_a_pull_commits_what_was_handled_not_what_it_asks_for"
    ),
    "rest-passed-over": ("tests/unit/store/test_message_store.py::test_a_pull_stops_at_either_limit_but_brings_at_least_one"),
    "answered-before-flush": (
        "tests/component/server/durability/test_group_commit.py::"
        "test_with_sync_flush_the_answer_follows_the_flush_and_so_does_visibility"
    ),
    "flush-counts-later-writes": (
        "tests/component/server/durability/test_group_commit.py::test_what_comes_during_a_flush_makes_up_the_next"
    ),
    "queue-cut-one-short": ("tests/unit/store/recovery/test_recovery.py::test_a_clean_stop_leaves_nothing_to_do"),
    "segment-name-unsynced": (
        "tests/unit/store/test_crash_points.py::test_a_crash_after_any_operation_loses_nothing_acknowledged"
    ),
    "half-offset-one-too-far": (
        "tests/unit/transaction/test_pending.py::test_a_decision_is_taken_back_if_it_did_not_reach_the_disk"
    ),
    "no-evidence-sought": (
        "tests/unit/server/transactions/test_transactional_messages.py::"
        "test_wherever_a_crash_cuts_a_commit_the_check_that_follows_delivers_it_once"
    ),
    "offset-after-newest-handled": (
        "tests/unit/client/pull/test_process_queue.py::test_a_gap_holds_the_offset_however_much_after_it_is_done"
    ),
    "queue-left-at-next-pull": (
        "tests/unit/client/rebalance/test_assignment.py::test_a_queue_that_is_given_up_is_left_at_its_oldest_open_message"
    ),
    "one-id-for-all-attempts": (
        "tests/unit/client/producer/test_message_sender.py::test_each_attempt_of_a_half_message_is_a_transaction_of_its_own"
    ),
    "silence-counts-as-stored": (
        "tests/unit/client/producer/test_send_requests.py"
        "::test_a_message_whose_answer_does_not_come_in_time_is_not_said_to_be_stored"
    ),
    "queues-left-over": (
        "tests/unit/client/rebalance/test_allocation.py::test_every_queue_has_exactly_one_owner_and_shares_differ_by_one_at_most"
    ),
    "greets-only-once": (
        "tests/unit/client/instance/test_heartbeats.py::test_in_the_background_a_heartbeat_is_sent_as_soon_as_something_changes"
    ),
    "answers-from-memory": (
        "tests/component/order_service/test_transaction_listener.py::test_a_local_transaction_after_the_check_back_rolls_back"
    ),
    "rollback-without-marker": (
        "tests/component/order_service/test_http.py::test_a_transaction_that_check_back_rolled_back_first_is_503"
    ),
    "order-and-row-apart": (
        "tests/component/order_service/test_order_store.py::test_a_late_local_transaction_cannot_slip_in_behind_a_check_back"
    ),
    "key-not-unique": (
        "tests/component/order_service/test_http.py::"
        "test_a_key_taken_while_the_half_message_was_under_way_answers_with_the_order_there_is"
    ),
    "cancelled-before-told": (
        "tests/component/order_service/test_cancelling_and_paying.py::"
        "test_a_cancellation_whose_local_commit_is_unknown_is_202_and_check_back_decides"
    ),
    "expiry-not-written": (
        "tests/component/order_service/test_cancelling_and_paying.py::"
        "test_check_back_rolls_an_order_back_that_is_not_paid_in_time"
    ),
    "witness-not-checked": (
        "tests/component/order_service/test_http.py::test_a_service_on_an_old_copy_of_its_database_takes_no_order_until_a_person_decides"
    ),
    "lost-answer-rolls-back": (
        "tests/component/order_service/test_cancelling_and_paying.py::"
        "test_a_cancellation_whose_local_commit_is_unknown_is_202_and_check_back_decides"
    ),
    "duplicates-added": ("tests/component/credit_service/test_ledger.py::test_a_redelivery_changes_nothing"),
    "credit-after-reversal-skipped": (
        "tests/component/credit_service/test_ledger.py::test_a_reversal_that_comes_before_its_credit_ends_at_the_same_balance"
    ),
    "balance-remembered": (
        "tests/component/credit_service/test_crediting.py::test_workers_and_a_service_at_the_same_time_credit_each_order_once"
    ),
    "acknowledged-unstored": (
        "tests/unit/service_runtime/test_inbox_listener.py::test_a_database_that_is_away_costs_time_and_no_redelivery"
    ),
    "deleted-before-work": ("tests/component/databases/test_inbox.py::test_work_that_is_interrupted_leaves_all_messages"),
    "floor-kept": ("tests/component/databases/test_inbox.py::test_a_clock_that_went_back_hides_no_new_message"),
    "outage-counted": ("tests/component/databases/test_inbox.py::test_a_rule_that_refuses_all_costs_time_and_no_attempts"),
    "parked-removed": (
        "tests/component/databases/test_inbox.py::test_a_message_is_parked_after_failures_beside_others_that_pass"
    ),
    "attempt-not-recorded": (
        "tests/component/databases/test_inbox.py::"
        "test_a_message_that_kills_its_process_is_tried_alone_and_is_parked_after_the_others_passed"
    ),
    "failed-not-due": (
        "tests/lab/simulation/test_shop.py::test_an_order_that_cannot_be_credited_waits_alone_and_passes_when_it_can"
    ),
    "key-of-producer": (
        "tests/component/databases/test_inbox.py::test_two_messages_with_one_id_of_their_producer_are_both_processed"
    ),
    "task-sent-once": ("tests/lab/simulation/test_shop.py::test_a_task_that_is_lost_doubled_or_late_credits_its_orders_once"),
    "refusal-not-reported": (
        "tests/unit/credit_service/test_crediting.py::test_a_refusal_closes_the_order_and_reports_it_under_the_request_s_id"
    ),
    "refusal-not-closed": (
        "tests/component/credit_service/test_crediting.py::test_a_refused_order_is_closed_and_reported_in_one_transaction"
    ),
    "outbox-removed-unsent": (
        "tests/component/service_runtime/test_outbox.py::test_a_message_that_the_broker_does_not_confirm_is_sent_later_and_blocks_no_other"
    ),
    "recovered-log-unsynced": (
        "tests/unit/store/test_crash_points.py::test_what_a_start_after_a_kill_has_shown_survives_a_power_failure"
    ),
    "failed-sync-repeated": (
        "tests/component/server/durability/test_group_commit.py::test_a_flush_that_fails_takes_back_what_it_was_for"
    ),
    "slow-flush-counts-as-stored": (
        "tests/unit/client/transaction/test_transaction_decision.py::"
        "test_a_half_message_that_is_not_safe_is_rolled_back_without_running_the_local_transaction"
    ),
    "first-id-kept": (
        "tests/unit/client/producer/test_message_sender.py"
        "::test_the_result_of_a_half_message_has_the_id_of_the_attempt_that_was_stored"
    ),
    "offsets-noted-before-flush": (
        "tests/unit/server/transactions/test_transactional_messages.py::"
        "test_consumer_offsets_are_noted_when_what_they_rest_on_is_on_disk"
    ),
    "delay-offset-before-flush": (
        "tests/unit/server/schedule/test_delayed_delivery.py"
        "::test_the_offset_of_a_level_passes_a_delivered_message_once_that_is_on_the_disk"
    ),
}
"""Maps bug names to tests."""
