"""Stage 2: the broker stores and numbers messages."""

from tutorials.build_your_own.tester.requests import send
from tutorials.build_your_own.tester.trial import Trial, check

_OURS = "broker/rocketmq_broker/server/sending/send_processor.py"
_APACHE = "SendMessageProcessor"


def play(trial: Trial) -> None:
    """Runs the checks of this stage. Raises ClaimFailed if a check fails."""
    trial.start()
    _says_where_it_stored(trial)
    _counts_each_queue(trial)
    _counts_each_topic(trial)


def _says_where_it_stored(trial: Trial) -> None:
    with trial.claim(
        "SEND_MESSAGE is answered with queueId, queueOffset and msgId: the broker's address and the commit log offset",
        hint="msgId is 16 bytes in 32 hexadecimal digits: IPv4 address (4), port (4), commit log offset (8). A transaction's "
        "producer takes the commit log offset from it.",
        ours="broker/rocketmq_broker/message/ids.py",
        apache="MessageDecoder.createMessageId",
    ):
        stored = send(trial.connect(), "books", b"first", queue_id=2)
        check(stored.queue_id == 2, "queueId 2, as in the request", f"queueId {stored.queue_id}")
        check(stored.queue_offset == 0, "queueOffset 0 for the first message of a queue", f"queueOffset {stored.queue_offset}")
        address = bytes([127, 0, 0, 1]).hex() + trial.broker.port.to_bytes(4).hex()
        check(
            stored.msg_id.lower().startswith(address),
            f"a msgId that begins with {address.upper()}: 127.0.0.1 and port {trial.broker.port}",
            stored.msg_id,
        )


def _counts_each_queue(trial: Trial) -> None:
    with trial.claim(
        "Queue offsets count 0, 1, 2 in each queue by itself; commit log offsets grow over all of them",
        hint="A queue offset is a message's number within its queue. Keep one counter for each topic and queue id.",
        ours=_OURS,
        apache=_APACHE,
    ):
        connection = trial.connect()
        sent = [(queue_id, send(connection, "orders", b"message", queue_id=queue_id)) for queue_id in (0, 1, 0, 0, 1)]
        for queue_id in (0, 1):
            offsets = [stored.queue_offset for at, stored in sent if at == queue_id]
            check(
                offsets == list(range(len(offsets))),
                f"queueOffset {', '.join(map(str, range(len(offsets))))} for the messages of queue {queue_id}",
                ", ".join(map(str, offsets)),
            )
        places = [stored.commit_log_offset for _, stored in sent]
        check(places == sorted(set(places)), "commit log offsets (in msgId) that grow with each message", f"{places}")


def _counts_each_topic(trial: Trial) -> None:
    with trial.claim(
        "Another topic counts from 0, also in a queue of the same id",
        hint="The counter's key is topic and queue id, not the queue id alone. The first message creates a topic.",
        ours="broker/rocketmq_broker/server/topics/topic_table.py",
        apache="TopicConfigManager.createTopicInSendMessageMethod",
    ):
        stored = send(trial.connect(), "payments", b"message")
        check(stored.queue_offset == 0, "queueOffset 0 in the new topic", f"queueOffset {stored.queue_offset}")
