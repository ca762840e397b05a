"""Tests the picture of a world for documents: an SVG of the events around the first broken promise."""

from xml.etree import ElementTree

from rocketmq_broker.testing.simulation.page import BrokenPromise, ReportedEvent, ReportedKind, WorldReport, picture_of

SVG = "{http://www.w3.org/2000/svg}"
LANES = ("ana", "orders-1", "broker-a")
HALF = ReportedEvent(1_000_000_000, "orders-1", ReportedKind.HALF, "half message for orders", ("order-1",), "broker-a")
CHECK = ReportedEvent(4_000_000_000, "broker-a", ReportedKind.CHECK, "check-back", ("order-1",), "orders-1")
OTHER = ReportedEvent(2_000_000_000, "ana", ReportedKind.ACTION, "place another order", ("order-2",))
BROKEN = BrokenPromise("A transaction has one outcome.", "COMMIT after <ROLLBACK>", 5_000_000_000, ("order-1",))


def texts(picture: str) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(picture).iter(f"{SVG}text")]


def test_the_picture_has_what_belongs_to_the_broken_promise_and_nothing_else() -> None:
    told = texts(picture_of(WorldReport(1, "one outcome", LANES, (HALF, OTHER, CHECK), (BROKEN,))))
    assert "half message for orders" in told
    assert "check-back" in told
    assert "“A transaction has one outcome”: COMMIT after <ROLLBACK>" in told
    assert "place another order" not in told


def test_a_wait_is_told_by_its_length() -> None:
    assert "… 3 s …" in texts(picture_of(WorldReport(1, "", LANES, (HALF, CHECK))))


def test_only_lanes_in_which_something_happens_have_a_head() -> None:
    heads = texts(picture_of(WorldReport(1, "", LANES, (HALF, CHECK))))
    assert [name for name in heads if name in LANES] == ["orders-1", "broker-a"]


def test_an_arrow_points_to_the_lane_where_it_arrives() -> None:
    def tip(happening: ReportedEvent) -> tuple[float, float]:
        root = ElementTree.fromstring(picture_of(WorldReport(1, "", LANES, (happening,))))
        line = next(node for node in root.iter(f"{SVG}line") if node.get("class") == "way")
        return float(line.get("x1", "")), float(line.get("x2", ""))

    begin, end = tip(HALF)
    assert begin < end
    begin, end = tip(CHECK)
    assert begin > end


def test_the_height_follows_from_what_happened() -> None:
    def height(*happenings: ReportedEvent) -> int:
        return int(ElementTree.fromstring(picture_of(WorldReport(1, "", LANES, happenings))).get("viewBox", "").split()[3])

    assert height(HALF, OTHER, CHECK) > height(HALF) > height(OTHER)
