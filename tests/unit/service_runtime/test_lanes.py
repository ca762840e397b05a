"""In each service, every route that calls a dependency that may hang has a lane."""

from unittest.mock import MagicMock

import pytest
from flask import Flask

import credit_service.entrypoints.http as credits
import inventory_service.entrypoints.http as inventory
import order_service.entrypoints.http as orders
from rocketmq_broker.world import World
from service_runtime.http import application
from service_runtime.http.requests import THREADS_KEPT_FREE, RequestLane, lanes_of

ASKS_NOBODY = {"/", "/docs", "/docs/try.js", "/livez", "/openapi.json", "/static/<path:filename>"}


@pytest.mark.parametrize("module", [orders, credits, inventory], ids=lambda module: module.__name__)
def test_each_route_that_asks_a_database_or_a_broker_has_a_lane(module: object, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[str, RequestLane] = {}
    monkeypatch.setattr(application, "keep_lanes", lambda _app, lane_of: kept.update(lane_of))
    # What the application works on is never asked here.
    app: Flask = module.create_app(*[MagicMock()] * (module.create_app.__code__.co_argcount - 1), World())  # type: ignore[attr-defined]
    routes = {
        f"{method} {rule.rule}"
        for rule in app.url_map.iter_rules()
        if rule.rule not in ASKS_NOBODY
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    assert routes <= set(kept)


def test_a_lane_that_is_left_has_room_again() -> None:
    lane = RequestLane(2, "full", "two are in it")
    assert [lane.enter(), lane.enter(), lane.enter()] == [True, True, False]
    lane.leave()
    assert [lane.enter(), lane.enter()] == [True, False]


def test_one_thread_is_left_for_whoever_asks_whether_the_process_lives() -> None:
    app = orders.create_app(MagicMock(), MagicMock(), World(), threads=8, placed_at_once=8 - THREADS_KEPT_FREE)
    lanes = lanes_of(orders.DESCRIPTION.routes, orders._lanes(8 - THREADS_KEPT_FREE), 8)
    taken = 0
    for lane in set(lanes.values()):
        while lane.enter():
            taken += 1
    assert taken == 7
    assert app.test_client().get("/livez").status_code == 200
