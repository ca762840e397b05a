"""The bits of a record's sysFlag (RocketMQ's MessageSysFlag)."""

from typing import Final

COMPRESSED: Final = 0x1
MULTI_TAGS: Final = 0x2

TRANSACTION_NOT_TYPE: Final = 0x0
TRANSACTION_PREPARED_TYPE: Final = 0x4
TRANSACTION_COMMIT_TYPE: Final = 0x8
TRANSACTION_ROLLBACK_TYPE: Final = 0xC
TRANSACTION_MASK: Final = 0xC

BORN_HOST_V6: Final = 0x10
STORE_HOST_V6: Final = 0x20
HOSTS_V6: Final = BORN_HOST_V6 | STORE_HOST_V6

COMPRESSION_LZ4: Final = 0x100
COMPRESSION_ZSTD: Final = 0x200
COMPRESSION_ZLIB: Final = 0x300
COMPRESSION_MASK: Final = 0x700

SENT_BITS: Final = COMPRESSED | COMPRESSION_MASK
"""The bits that a client may set. Only the broker sets the other bits.

The other bits are the transaction type, IPv6 hosts, several tags for each message, and batch bodies (0x40 and 0x80 in RocketMQ
5).
"""

_HOST_V6_LENGTH: Final = 20


def with_transaction(sys_flag: int, transaction: int) -> int:
    """Returns the flag with one of the TRANSACTION_*_TYPE values as its transaction bits (resetTransactionValue)."""
    return (sys_flag & ~TRANSACTION_MASK) | transaction


def with_hosts(sys_flag: int, born_host: bytes, store_host: bytes) -> int:
    """Returns the flag with its host bits set from the two encoded addresses. The bit of an IPv6 address is 1."""
    if len(born_host) == _HOST_V6_LENGTH:
        sys_flag |= BORN_HOST_V6
    else:
        sys_flag &= ~BORN_HOST_V6
    return sys_flag | STORE_HOST_V6 if len(store_host) == _HOST_V6_LENGTH else sys_flag & ~STORE_HOST_V6
