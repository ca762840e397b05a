from broker.transaction.offsets import OpWindow


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
    assert len(window._half_offsets) < 3000
