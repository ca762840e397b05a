from rocketmq_broker.server.parked.parked_queue import ParkedQueue


def test_messages_wait_until_they_are_treated() -> None:
    queue = ParkedQueue()
    queue.add(0, "credits")
    queue.add(1, "credits")
    queue.add(2, "mails")

    queue.mark(1, 70)
    queue.mark(1, 80)

    assert queue.untreated == {"credits": 1, "mails": 1}
    assert [queue.latest_mark(offset) for offset in range(4)] == [None, 80, None, None]


def test_a_group_whose_messages_were_all_treated_is_still_known() -> None:
    queue = ParkedQueue()
    queue.add(0, "credits")

    queue.mark(0, 70)

    assert queue.untreated == {"credits": 0}


def test_a_message_that_cannot_be_read_waits_for_nobody() -> None:
    queue = ParkedQueue(5)
    queue.add(7, "credits")

    assert queue.untreated == {"credits": 1}
    assert queue.end_offset == 8
    queue.mark(6, 70)
    assert queue.untreated == {"credits": 1}


def test_a_message_that_is_known_already_is_not_counted_twice() -> None:
    queue = ParkedQueue()
    queue.add(0, "credits", 3)

    queue.add(1, "credits")

    assert (queue.untreated, len(queue)) == ({"credits": 3}, 3)


def test_what_has_expired_waits_no_more() -> None:
    queue = ParkedQueue(10)
    queue.add(10, "credits", 5)
    queue.mark(11, 70)
    queue.mark(14, 71)

    queue.expire(12)
    queue.expire(12)

    assert (queue.untreated, len(queue), queue.end_offset) == ({"credits": 2}, 3, 15)
    assert (queue.latest_mark(11), queue.latest_mark(14)) == (None, 71)
    queue.expire(100)
    assert (queue.untreated, len(queue), queue.end_offset) == ({"credits": 0}, 0, 15)


def test_a_mark_about_a_message_that_is_not_there_changes_nothing() -> None:
    queue = ParkedQueue(10)
    queue.add(10, "credits")

    queue.mark(9, 70)
    queue.mark(11, 70)

    assert queue.untreated == {"credits": 1}
