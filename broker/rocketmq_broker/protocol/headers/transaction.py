"""Headers of requests that end, check or resume a transaction."""

import msgspec

from rocketmq_broker.message.text.java_numbers import Int32, Int64
from rocketmq_broker.protocol.command_header import CommandHeader

_DECISIONS = frozenset({0, 8, 12})
"""The valid transaction bits of MessageSysFlag: 0 (no decision), 8 (commit) and 12 (rollback)."""


class EndTransactionRequestHeader(CommandHeader, kw_only=True):
    """The header of END_TRANSACTION, with a producer's decision or its response to a check-back."""

    producer_group: str
    tran_state_table_offset: Int64
    commit_log_offset: Int64
    commit_or_rollback: Int32
    """The transaction bits of a sysFlag: 0 for no decision, 8 for commit, 12 for rollback."""
    from_transaction_check: bool = False
    msg_id: str
    transaction_id: str | None = None
    broker_name: str | None = msgspec.field(name="bname", default=None)

    def __post_init__(self) -> None:
        if self.commit_or_rollback not in _DECISIONS:
            raise ValueError(f"commitOrRollback field wrong: {self.commit_or_rollback}")


class CheckTransactionStateRequestHeader(CommandHeader):
    """The header of CHECK_TRANSACTION_STATE, which is the check-back. Its body is the half message."""

    tran_state_table_offset: Int64
    commit_log_offset: Int64
    msg_id: str | None = None
    transaction_id: str | None = None
    offset_msg_id: str | None = None
    broker_name: str | None = msgspec.field(name="bname", default=None)


class ResumeCheckHalfMessageRequestHeader(CommandHeader):
    """The header of RESUME_CHECK_HALF_MESSAGE, which resumes a discarded half message."""

    msg_id: str | None = None
