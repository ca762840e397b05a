"""Registration: a broker that stops registering is forgotten by the name servers."""

import asyncio
from typing import Any

from broker.remoting.errors import ConnectFailed
from broker.server.identity import BrokerIdentity
from broker.server.registration import Registration
from tests.unit.server.conftest import Desk

IDENTITY = BrokerIdentity(cluster="DefaultCluster", name="broker-a", broker_id=0, host="127.0.0.1", port=10911)


class Client:
    """A remoting client whose requests fail, each for the next of these reasons."""

    def __init__(self, *reasons: Exception) -> None:
        self.reasons = list(reasons)

    async def invoke(self, *_: Any, **__: Any) -> Any:
        raise self.reasons.pop(0)


async def test_a_mistake_during_a_registration_ends_neither_the_next_nor_those_who_wait(desk: Desk) -> None:
    client = Client(RuntimeError("a mistake"), ConnectFailed("nobody listens"), ConnectFailed("nobody listens"))
    registration = Registration(
        client=client,  # type: ignore[arg-type]
        name_servers=["127.0.0.1:1"],
        identity=IDENTITY,
        topic_table=desk.topics,
        broker_permission=6,
        period_s=60,
    )
    running = asyncio.create_task(registration.run())
    try:
        for _ in range(3):
            await asyncio.wait_for(registration.registered(), 30)
    finally:
        running.cancel()
    assert client.reasons == []
