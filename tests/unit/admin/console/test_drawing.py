"""Tests the console's drawings: the positions of lanes, arrows and lines."""

from rocketmq_broker.admin.console.drawing.chart import chart
from rocketmq_broker.admin.console.drawing.sequence import sequence_diagram
from rocketmq_broker.admin.console.sampling import Sample, added, charts_of
from rocketmq_broker.admin.timeline.event import Arrow, Event
from rocketmq_broker.admin.timeline.folding import FoldedEvent


def event(at_ms: int | None, sender: str, receiver: str, label: str = "told", *, is_lost: bool = False) -> Event:
    return Event(at_ms, f"{sender} tells {receiver}", "commit log", Arrow(sender, receiver, label, is_lost))


STORY = [
    event(1000, "shops", "broker"),
    event(1020, "shops", "order database"),
    event(None, "shops", "broker", is_lost=True),
    event(7000, "broker", "shops"),
    event(7500, "broker", "broker"),
    event(8000, "broker", "credits"),
    event(8100, "credits", "credit database"),
]


def test_producers_stand_left_of_the_broker_and_consumers_right_of_it() -> None:
    lanes = sequence_diagram(STORY).lanes
    assert [lane.name for lane in lanes] == ["order database", "shops", "broker", "credits", "credit database"]
    assert [lane.x for lane in lanes] == sorted(lane.x for lane in lanes)


def test_an_operator_stands_left_of_all() -> None:
    lanes = sequence_diagram([event(1, "shops", "broker"), event(2, "operator", "broker")]).lanes
    assert [lane.name for lane in lanes] == ["operator", "shops", "broker"]


def test_a_consumer_that_writes_before_its_offset_is_known_stands_right_of_the_broker() -> None:
    lanes = sequence_diagram([event(1, "shops", "broker"), event(2, "credits", "credit database")]).lanes
    assert [lane.name for lane in lanes] == ["shops", "broker", "credits", "credit database"]


def test_lanes_that_are_given_keep_their_order() -> None:
    lanes = sequence_diagram([event(1, "shops", "one"), event(2, "shops", "two")], ["one", "shops", "two"]).lanes
    assert [lane.name for lane in lanes] == ["one", "shops", "two"]


def test_arrows_come_one_below_the_other_with_the_time_since_the_half_message() -> None:
    rows = sequence_diagram(STORY).rows
    assert [row.time for row in rows] == ["+0 ms", "+20 ms", "", "+6,000 ms", "+6,500 ms", "+7,000 ms", "+7,100 ms"]
    assert [row.y for row in rows] == sorted({row.y for row in rows})
    assert [row.toward for row in rows[:4]] == [1, -1, 1, -1]


def test_a_long_wait_has_a_mark_between_the_arrows_around_it() -> None:
    drawn = sequence_diagram(STORY)
    assert [wait.text for wait in drawn.waits] == ["5 s pass"]
    assert drawn.rows[2].y < drawn.waits[0].y < drawn.rows[3].y
    assert drawn.height > drawn.rows[-1].y


def test_folded_check_backs_are_one_arrow_and_a_mark_with_their_pace() -> None:
    arrow = Arrow("broker", "shops", "check-back 3 to 199")
    fold = FoldedEvent(
        at_ms=9000, what="", on_record="", arrow=arrow, count=197, until_ms=401_000, pace="every 2 s, answered UNKNOWN"
    )
    drawn = sequence_diagram([event(7000, "broker", "shops"), fold, event(403_000, "shops", "broker")])
    assert [wait.text for wait in drawn.waits] == ["2 s pass", "197 check-backs, every 2 s, answered UNKNOWN", "2 s pass"]
    assert len(drawn.rows) == 3
    assert sequence_diagram([fold], lane_width=40).width >= 6.5 * len(drawn.waits[1].text)


def test_a_lost_arrow_ends_half_way_and_a_step_for_oneself_is_a_loop() -> None:
    rows = sequence_diagram(STORY).rows
    lost, loop = rows[2], rows[4]
    assert lost.begin_x < lost.head_x < lost.end_x
    assert loop.is_loop
    assert not rows[0].is_loop


def test_a_label_behind_the_last_life_line_is_not_clipped() -> None:
    label = "rolled back in one place"
    drawn = sequence_diagram([event(1, "shops", "broker"), event(2, "broker", "broker", label)])
    assert drawn.width >= drawn.rows[1].label_x + 7 * len(label)


def test_long_labels_are_cut_and_the_whole_sentence_is_kept() -> None:
    (row,) = sequence_diagram([event(1, "shops", "broker", "a label that is much too long for its place")]).rows
    assert len(row.label) == 25
    assert row.what == "shops tells broker"


def test_in_a_narrower_diagram_lanes_are_closer_and_labels_are_shorter() -> None:
    drawn = sequence_diagram([event(1, "shops", "broker", "a label that is too long")], lane_width=112)
    shops, broker = drawn.lanes
    assert broker.x - shops.x == 112 > drawn.head_width
    assert len(drawn.rows[0].label) == 16
    assert drawn.width < sequence_diagram(STORY[:1]).width


def test_events_that_nobody_told_anybody_are_left_out() -> None:
    assert sequence_diagram([Event(1, "pending", "broker's memory")]).rows == []


def test_a_chart_reaches_from_left_to_right_and_leaves_a_gap_where_nothing_is_known() -> None:
    drawn = chart("Pending", "", [(0, 0), (1000, 10), (2000, None), (3000, 5), (4000, 5)], span_ms=4000)
    assert drawn.lines == ["0.0,68.0 80.0,4.0", "240.0,36.0 320.0,36.0"]
    assert (drawn.latest, drawn.highest) == ("5", "10")


def test_a_chart_without_a_known_figure_says_unknown() -> None:
    drawn = chart("Pending", "", [(0, None)], span_ms=1000)
    assert (drawn.lines, drawn.latest, drawn.highest) == ([], "unknown", "unknown")


def test_rates_are_counted_between_samples_and_a_new_count_begins_a_gap() -> None:
    samples = [Sample(0, 100), Sample(2000, 120), Sample(4000, 3), Sample(6000, 5)]
    stored = charts_of(samples)[0]
    assert stored.latest == "1"
    assert stored.highest == "10"
    assert len(stored.lines) == 2


def test_several_brokers_are_added_and_what_one_does_not_tell_is_unknown() -> None:
    assert added(5, [Sample(1, 10, 20, 3, 0), Sample(1, 1, 2, None, 1)]) == Sample(5, 11, 22, None, 1)
