"""Stage 1: the broker listens on its port and responds to requests."""

from tutorials.build_your_own.tester.frames import CODES, Frame, encode_request
from tutorials.build_your_own.tester.requests import PRODUCERS, expect_code, heart_beat, heart_beat_body
from tutorials.build_your_own.tester.trial import Trial, check

UNKNOWN_CODE = 29_999
_OURS = "broker/rocketmq_broker/protocol/frame.py"
_APACHE = "NettyDecoder"


def play(trial: Trial) -> None:
    """Runs the checks of this stage. Raises ClaimFailed if a check fails."""
    trial.start()
    _answers_a_request(trial)
    _answers_what_it_does_not_know(trial)
    _puts_torn_frames_together(trial)
    _takes_frames_apart(trial)
    _answers_no_oneway_request(trial)
    _serves_several_connections(trial)


def _heart_beat(opaque: int, *, oneway: bool = False) -> bytes:
    return encode_request(CODES["HEART_BEAT"], opaque, {}, heart_beat_body(PRODUCERS), oneway=oneway)


def _check_answer(answer: Frame, opaque: int) -> None:
    check(answer.opaque == opaque, f"opaque {opaque}, as in the request", f"opaque {answer.opaque}")
    check(answer.is_answer, "flag 1, whose lowest bit says that this is an answer", f"flag {answer.flag}")
    expect_code(answer, 0)


def _answers_a_request(trial: Trial) -> None:
    with trial.claim(
        "A heartbeat is answered: code 0, flag 1, and the opaque of the request",
        hint="Read LENGTH (4 bytes), then LENGTH bytes. Answer with the request's opaque: the client finds its request by it.",
        ours="broker/rocketmq_broker/protocol/command.py",
        apache="RemotingCommand",
    ):
        connection = trial.reconnect()
        opaque = 4711
        connection.send_bytes(_heart_beat(opaque), f"HEART_BEAT (34), opaque {opaque}")
        _check_answer(connection.take(lambda frame: True, "an answer to HEART_BEAT"), opaque)


def _answers_what_it_does_not_know(trial: Trial) -> None:
    with trial.claim(
        "A request code that it does not know is answered with code 3, and the connection stays open",
        hint="Newer clients send requests that you do not support. Closing the connection would lose their other requests, too.",
        ours="broker/rocketmq_broker/remoting/dispatcher.py",
        apache="NettyRemotingAbstract.processRequestCommand",
    ):
        connection = trial.reconnect()
        expect_code(connection.request(UNKNOWN_CODE, {}), 3)
        heart_beat(connection)


def _puts_torn_frames_together(trial: Trial) -> None:
    with trial.claim(
        "A frame that arrives in pieces is answered like any other",
        hint="TCP is a stream: one read may return half a frame. Keep the bytes until the frame has LENGTH bytes.",
        ours=_OURS,
        apache=_APACHE,
    ):
        connection = trial.reconnect()
        opaque = connection.next_opaque()
        frame = _heart_beat(opaque)
        pieces = frame[:2], frame[2:30], frame[30:]
        for number, piece in enumerate(pieces, 1):
            connection.send_bytes(piece, f"piece {number} of {len(pieces)} of a HEART_BEAT, {len(piece)} bytes")
            connection.wait_until_read()
        _check_answer(connection.take(lambda frame: True, "an answer to the HEART_BEAT that came in pieces"), opaque)


def _takes_frames_apart(trial: Trial) -> None:
    with trial.claim(
        "Two frames that arrive in one piece are both answered",
        hint="One read may return several frames. Decode frames until the rest is incomplete.",
        ours=_OURS,
        apache=_APACHE,
    ):
        connection = trial.reconnect()
        opaques = {connection.next_opaque(), connection.next_opaque()}
        connection.send_bytes(b"".join(map(_heart_beat, sorted(opaques))), f"two HEART_BEATs in one piece, opaques {opaques}")
        answered = {connection.take(lambda frame: True, "an answer to each of two HEART_BEATs").opaque for _ in opaques}
        check(answered == opaques, f"answers with the opaques {opaques}", f"answers with {answered}")


def _answers_no_oneway_request(trial: Trial) -> None:
    with trial.claim(
        "A one-way request (flag 2) is carried out, and not answered",
        hint="Look at bit 2 of the request's flag before you write the answer.",
        ours="broker/rocketmq_broker/remoting/dispatcher.py",
        apache="NettyRemotingAbstract.processRequestCommand",
    ):
        connection = trial.reconnect()
        oneway = connection.next_opaque()
        connection.send_bytes(_heart_beat(oneway, oneway=True), f"HEART_BEAT (34), opaque {oneway}, one-way")
        heart_beat(connection)
        unasked = [frame for frame in connection.inbox if frame.opaque == oneway]
        check(not unasked, "no answer to a one-way request", f"an answer with its opaque, {oneway}")


def _serves_several_connections(trial: Trial) -> None:
    with trial.claim(
        "Several connections are served at a time",
        hint="One connection that sends nothing must not keep the others waiting: a thread or a task for each.",
        ours="broker/rocketmq_broker/remoting/server.py",
        apache="NettyRemotingServer",
    ):
        trial.hang_up()
        idle, busy = trial.connect("idle"), trial.connect("busy")
        heart_beat(busy)
        heart_beat(idle)
