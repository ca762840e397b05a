"""The screen that shows Apache's transaction check() and this broker's side by side. It sends no request to a broker."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from rocketmq_broker.admin.console.drawing.sequence import LANE_WIDTH, Diagram, sequence_diagram
from rocketmq_broker.admin.console.screen import Screen
from rocketmq_broker.admin.console.visit import Visit
from rocketmq_broker.admin.errors import Refused
from rocketmq_broker.admin.replay import HISTORIES, LANES, CheckHistory, Replay, replay


class CheckReplayedFacts(NamedTuple):
    """The content of the screen."""

    histories: Mapping[str, CheckHistory]
    name: str
    replay: Replay
    diagram: Diagram


async def find(visit: Visit) -> CheckReplayedFacts:
    """Replays the history that the visitor selected, or by default the first one. Raises Refused for an unknown history."""
    return check_replayed(visit.word("history"))


def check_replayed(name: str = "", *, lane_width: int = LANE_WIDTH) -> CheckReplayedFacts:
    """Plays the history with this name, or the first one. Raises Refused for an unknown history.

    `lane_width` is the distance of two life lines of its diagram in pixels.
    """
    name = name or next(iter(HISTORIES))
    if name not in HISTORIES:
        raise Refused(f"history not found: {name}")
    played = replay(HISTORIES[name])
    return CheckReplayedFacts(HISTORIES, name, played, sequence_diagram(played.events, LANES, lane_width=lane_width))


SCREEN: Final = Screen("/check-replayed", "Apache's check() replayed", "check_replayed.html", find, refresh_s=None)
