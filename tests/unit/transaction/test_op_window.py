from array import array

from rocketmq_broker.transaction.messages.offsets import OpWindow


def test_the_op_offset_stops_at_the_first_op_message_that_is_still_needed() -> None:
    window = OpWindow(10)
    for op_offset, half_offset in [(10, 3), (11, 9), (12, 4)]:
        window.add(op_offset, half_offset)

    assert window.advance(5) == 11
    assert window.advance(10) == 13


def test_an_op_message_that_was_not_seen_holds_nothing_back() -> None:
    window = OpWindow(0)
    window.add(2, 7)

    assert window.advance(7) == 2
    assert window.advance(8) == 3


def test_an_op_message_that_is_taken_back_is_forgotten() -> None:
    window = OpWindow(0)
    window.add(0, 1)
    window.add(1, 2)
    window.take_back()

    assert window.advance(100) == 1
    window.add(1, 5)
    assert window.advance(5) == 1


def test_an_op_message_can_be_taken_back_after_it_was_passed() -> None:
    window = OpWindow(0)
    window.add(0, 1)
    assert window.advance(100) == 1

    window.take_back()

    assert window.advance(100) == 0


def test_passed_op_messages_cost_no_memory() -> None:
    window = OpWindow(0)
    for offset in range(10_000):
        window.add(offset, offset)
        window.advance(offset)

    assert len(window) <= 1
    assert len(window._named) < 3000


def test_an_op_message_that_is_read_again_changes_nothing() -> None:
    window = OpWindow(10)
    window.add(10, 3)
    window.add(11, 9)

    window.add(10, 20)

    assert window.next_offset == 12
    assert window.advance(5) == 11


def test_an_op_message_can_be_taken_back_after_it_was_dropped_from_memory() -> None:
    window = OpWindow(0)
    for offset in range(2000):
        window.add(offset, offset)
    assert window.advance(2000) == 2000
    assert window._named == array("q")

    window.take_back()

    assert window.next_offset == 1999
    window.add(1999, 2000)
    assert window.advance(2000) == 1999
    assert window.advance(2001) == 2000
