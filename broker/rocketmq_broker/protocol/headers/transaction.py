"""Headers of the decision, the check-back and the resumption of a transaction."""

import msgspec

from rocketmq_broker.message.text.java_numbers import Int32, Int64
from rocketmq_broker.protocol.command_header import CommandHeader

_DECISIONS = frozenset({0, 8, 12})
"""No decision, commit, rollback: MessageSysFlag's transaction bits."""


class EndTransactionRequestHeader(CommandHeader, kw_only=True):
    """END_TRANSACTION: the decision; also the answer to a check-back."""

    producer_group: str
    tran_state_table_offset: Int64
    commit_log_offset: Int64
    commit_or_rollback: Int32
    """The transaction bits of a sysFlag: 0 no decision, 8 commit, 12 rollback."""
    from_transaction_check: bool = False
    msg_id: str
    transaction_id: str | None = None
    broker_name: str | None = msgspec.field(name="bname", default=None)

    def __post_init__(self) -> None:
        if self.commit_or_rollback not in _DECISIONS:
            raise ValueError(f"commitOrRollback field wrong: {self.commit_or_rollback}")


class CheckTransactionStateRequestHeader(CommandHeader):
    """CHECK_TRANSACTION_STATE: the broker asks for the result of a local transaction; its body is the half message."""

    tran_state_table_offset: Int64
    commit_log_offset: Int64
    msg_id: str | None = None
    transaction_id: str | None = None
    offset_msg_id: str | None = None
    broker_name: str | None = msgspec.field(name="bname", default=None)


class ResumeCheckHalfMessageRequestHeader(CommandHeader):
    """RESUME_CHECK_HALF_MESSAGE: check a discarded half message again."""

    msg_id: str | None = None
