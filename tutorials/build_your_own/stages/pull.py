"""Stage 3: consumers pull messages."""

from tutorials.build_your_own.tester.connection import Connection
from tutorials.build_your_own.tester.layout import shown
from tutorials.build_your_own.tester.requests import expect_code, pull, pull_until, send
from tutorials.build_your_own.tester.trial import Trial, check

TOPIC = "orders"
ALL_BYTES = bytes(range(256))
_OURS = "broker/rocketmq_broker/server/pulling/pull_processor.py"
_APACHE = "PullMessageProcessor"


def play(trial: Trial) -> None:
    """Runs the checks of this stage. Raises ClaimFailed if a check fails."""
    trial.start()
    connection = trial.connect()
    _returns_what_was_sent(trial, connection)
    _goes_on_where_it_is_told(trial, connection)
    _says_when_there_is_nothing(trial, connection)


def _returns_what_was_sent(trial: Trial, connection: Connection) -> None:
    with trial.claim(
        "PULL_MESSAGE returns the records of a queue in their order, each with topic, body and properties as they were sent",
        hint="The answer's body is records, one behind the other, with nothing between them: the bytes of the commit log.",
        ours="broker/rocketmq_broker/message/record.py",
        apache="MessageDecoder.decode",
    ):
        send(connection, TOPIC, ALL_BYTES, queue_id=1, properties={"TAGS": "created", "colour": "blau, größer"})
        send(connection, TOPIC, b"in another queue", queue_id=2)
        for number in range(1, 5):
            send(connection, TOPIC, b"message %d" % number, queue_id=1)
        records = pull_until(connection, TOPIC, b"message 4", trial.patience_s, queue_id=1)
        bodies = [record.body for record in records]
        wanted = [ALL_BYTES, b"message 1", b"message 2", b"message 3", b"message 4"]
        check(bodies == wanted, f"bodies {', '.join(map(shown, wanted))}", ", ".join(map(shown, bodies)))
        check({record.topic for record in records} == {TOPIC}, f"topic {TOPIC}", str({record.topic for record in records}))
        found = {name: records[0].properties.get(name) for name in ("TAGS", "colour")}
        check(found == {"TAGS": "created", "colour": "blau, größer"}, "the properties as they were sent, in UTF-8", str(found))


def _goes_on_where_it_is_told(trial: Trial, connection: Connection) -> None:
    with trial.claim(
        "A pull begins at queueOffset, brings maxMsgNums messages at most, and nextBeginOffset says where the next one begins",
        hint="nextBeginOffset is the queue offset after the last record of the answer. A consumer continues there: a value that "
        "is too large loses messages.",
        ours=_OURS,
        apache=_APACHE,
    ):
        for offset, limit, wanted in ((1, 2, [1, 2]), (3, 10, [3, 4])):
            pulled = pull(connection, TOPIC, offset, queue_id=1, max_messages=limit)
            got = [record.number("QUEUEOFFSET") for record in pulled.records]
            check(got == wanted, f"the records with the queue offsets {wanted}", f"those with {got}")
            next_offset = pulled.answer.number("nextBeginOffset")
            check(next_offset == wanted[-1] + 1, f"nextBeginOffset {wanted[-1] + 1}", f"nextBeginOffset {next_offset}")
            bounds = pulled.answer.number("minOffset"), pulled.answer.number("maxOffset")
            check(bounds == (0, 5), "minOffset 0 and maxOffset 5: the next message's offset", f"{bounds[0]} and {bounds[1]}")


def _says_when_there_is_nothing(trial: Trial, connection: Connection) -> None:
    with trial.claim(
        "A pull that finds nothing says why: 19 at the queue's end, 21 beyond it, 17 for a topic that does not exist",
        hint="A consumer acts on the code: on 19 it pulls again later, on 21 it corrects its offset, on 17 it reports an error.",
        ours=_OURS,
        apache=_APACHE,
    ):
        at_end = pull(connection, TOPIC, 5, queue_id=1).answer
        expect_code(at_end, 19, "at the queue's end, offset 5")
        check(at_end.number("nextBeginOffset") == 5, "nextBeginOffset 5", at_end.field("nextBeginOffset"))
        expect_code(pull(connection, TOPIC, 0, queue_id=3).answer, 19, "in a queue that has no message yet")
        expect_code(pull(connection, TOPIC, 50, queue_id=1).answer, 21, "at offset 50, where the queue ends at 5")
        expect_code(pull(connection, "unknown", 0).answer, 17, "for a topic without messages")
