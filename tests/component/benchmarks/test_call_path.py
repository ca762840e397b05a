"""Tests of the number of files that a message, an order and a credit pass through."""

from pathlib import Path

from rocketmq_broker.client import Message
from tests.component.benchmarks.call_path import (
    OF_A_MESSAGE,
    CallPath,
    branching_functions,
    call_path_of_a_credit,
    call_path_of_a_message,
    call_path_of_an_order,
    summary,
)


async def test_a_message_passes_through_forty_files_that_choose() -> None:
    found = await call_path_of_a_message()
    assert len(found.choosing) <= 40, summary("message", found)
    assert "broker/rocketmq_broker/server/transactions/transactional_messages.py" in found.choosing


def test_an_order_passes_through_16_files_of_the_services(tmp_path: Path) -> None:
    found = call_path_of_an_order(tmp_path)
    assert len(found.files) <= 16, "\n".join(sorted(found.files))
    assert "order_service/service_layer/transaction_listener.py" in found.choosing


def test_a_credit_passes_through_14_files_from_the_listener_to_the_row_in_the_ledger(tmp_path: Path) -> None:
    found = call_path_of_a_credit(tmp_path)
    assert len(found.files) <= 14, "\n".join(sorted(found.files))
    assert {"service_runtime/inbox/inbox_listener.py", "credit_service/adapters/ledger.py"} <= found.files


def test_only_what_ran_each_time_is_the_way() -> None:
    found = CallPath(OF_A_MESSAGE)
    with found.followed():
        Message.of("orders", b"order")
    assert ("broker/rocketmq_broker/message/message.py", "of") in {function[:2] for function in found.ran}
    with found.followed():
        pass
    assert not found.ran
    assert not found.hops


def test_a_function_counts_with_its_own_branches() -> None:
    names = {function.name for function in branching_functions("tests/component/benchmarks/call_path.py")}
    assert {"see", "project_file", "branching_functions"} <= names
    assert "summary" not in names
