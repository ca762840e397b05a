"""Tests that the overview shows problems and links to the pages where an operator can act."""

from rocketmq_broker.client import Message
from rocketmq_broker.testing import SyncRocketMQ
from tests.component.admin.test_in_hand import pop
from tests.unit.admin.console.visitor import Visitor


def test_messages_that_come_again_and_again_are_an_alert_with_a_link_to_their_group(
    rocketmq: SyncRocketMQ, visitor: Visitor
) -> None:
    rocketmq.producer("shops").send(Message.of("orders", b"order"))
    pop(rocketmq)
    assert "No problems found" in visitor.sees("/")
    assert "The group credits has 1 message in hand" in visitor.sees("/")

    for _ in range(2):
        rocketmq.advance(seconds=31)
        pop(rocketmq)
    html = visitor.html("/")
    alert = html[html.index('role="alert"') :]
    assert "The group credits receives messages repeatedly, one of them for the 3rd time" in alert
    assert "Find out why its consumers do not acknowledge in time" in alert
    assert '<a href="/group?group=credits">Consumer group credits</a>' in alert
    assert "Consumer group credits" in visitor.sees("/group?group=credits")
    assert '<a href="/group?group=credits">消费者组 credits</a>' in visitor.html("/?lang=zh")
