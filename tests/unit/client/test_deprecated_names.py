"""Replaced names work until the release after the release that deprecates them."""

import pytest

from rocketmq_broker.client import NotRunning, Producer, PushConsumer


async def test_is_heard_warns_and_returns_what_is_connected_returns() -> None:
    with pytest.warns(DeprecationWarning, match="use is_connected$"), pytest.raises(NotRunning):
        await Producer("p").is_heard()
    with pytest.warns(DeprecationWarning, match="use is_connected$"):
        assert await PushConsumer("g").is_heard() is False
    with pytest.warns(DeprecationWarning, match="use is_connected_to_any$"):
        assert await PushConsumer("g").is_heard_by_any() is False
