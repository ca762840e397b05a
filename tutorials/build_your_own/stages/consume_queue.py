"""Stage 5: each queue has a consume queue, which is a file with the positions of the queue's messages."""

from tutorials.build_your_own.tester.failed import Compared, Failed
from tutorials.build_your_own.tester.layout import UNIT, Record, cut, shown
from tutorials.build_your_own.tester.requests import pull, pull_until, send
from tutorials.build_your_own.tester.trial import Trial, check

TOPIC = "orders"
TAGS = ("created", "", "paid", "größer", "shipped to customer")
"""The tags of the sent messages. The hashes of the last two tags are negative."""
_OURS = "broker/rocketmq_broker/store/queues/dispatch.py"
_APACHE = "ConsumeQueue.putMessagePositionInfo"


def play(trial: Trial) -> None:
    """Runs the checks of this stage. Raises ClaimFailed if a check fails."""
    trial.start()
    connection = trial.connect()
    for number, tag in enumerate(TAGS):
        send(connection, TOPIC, b"message %d" % number, queue_id=1, properties={"TAGS": tag} if tag else {}, note=f"tag {tag}")
    send(connection, TOPIC, b"in another queue", queue_id=3)
    with trial.claim(
        "A pull that subscribes to a tag gets the messages with that tag alone",
        hint="Compare the hash of the subscription's tag with the unit's: the record need not be read for it.",
        ours="broker/rocketmq_broker/server/clients/message_filters.py",
        apache="DefaultMessageFilter.isMatchedByConsumeQueue",
    ):
        pull_until(connection, TOPIC, b"message %d" % (len(TAGS) - 1), trial.patience_s, queue_id=1)
        bodies = [record.body for record in pull(connection, TOPIC, 0, queue_id=1, subscription="paid").records]
        check(bodies == [b"message 2"], 'one message, "message 2"', ", ".join(map(shown, bodies)) or "none")
    trial.stop()
    _has_a_unit_for_each(trial)


def _has_a_unit_for_each(trial: Trial) -> None:
    with trial.claim(
        "consumequeue/TOPIC/QUEUE/00000000000000000000 has 20 bytes for each message: commit log offset, size, hash of the tag",
        hint="The hash is Java's String.hashCode: h = 31 * h + c for each character (UTF-16), in 32 bits, signed. It is "
        'written as 8 bytes, so a negative one begins with ff ff ff ff. Without a tag it is 0; "created" has 1028554472.',
        ours=_OURS,
        apache=_APACHE,
    ):
        for queue_id, tags in ((1, TAGS), (3, ("",))):
            records = [record for record in trial.files.records_of(TOPIC) if record.number("QUEUEID") == queue_id]
            units = trial.files.units(TOPIC, queue_id)
            if len(units) != len(records):
                raise Failed(f"{len(records)} units for queue {queue_id}, one for each message", f"{len(units)} units")
            for number, (unit, record, tag) in enumerate(zip(units, records, tags, strict=True)):
                _compare(unit, record, tag, f"consumequeue/{TOPIC}/{queue_id}/{'0' * 20}, the unit of queue offset {number}")


def _compare(unit: bytes, record: Record, tag: str, place: str) -> None:
    wanted = (
        record.bytes_of("PHYSICALOFFSET"),
        record.bytes_of("TOTALSIZE"),
        java_hash_code(tag).to_bytes(8, signed=True),
    )
    fields = [Compared(field.name, field.data, right) for field, right in zip(cut(UNIT, unit), wanted, strict=True)]
    if wrong := [field.name for field in fields if not field.is_right]:
        what = f'the unit of {shown(record.body)}, tag "{tag}"'
        raise Failed(what, f"another {', '.join(wrong)}", fields=fields, place=place)


def java_hash_code(text: str) -> int:
    """Returns Java's String.hashCode. Every character must be in the Basic Multilingual Plane."""
    code = 0
    for character in text:
        code = (31 * code + ord(character)) & 0xFFFFFFFF
    return code - (1 << 32) if code >> 31 else code
