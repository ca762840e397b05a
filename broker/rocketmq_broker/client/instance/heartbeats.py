"""Heartbeats, which tell brokers the groups of this client (RocketMQ's MQClientInstance.sendHeartbeatToAllBroker)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from rocketmq_broker.client.errors import BrokerError, BrokerUnreachable, ClientError
from rocketmq_broker.client.instance.calls import ask, ask_for_success
from rocketmq_broker.client.instance.rhythm import Rhythm
from rocketmq_broker.client.instance.routes import Routes
from rocketmq_broker.protocol.bodies.heartbeat import HeartbeatData
from rocketmq_broker.protocol.bodies.route import MASTER_ID
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.headers import UnregisterClientRequestHeader
from rocketmq_broker.remoting.backoff import Backoff
from rocketmq_broker.remoting.client import RemotingClient
from rocketmq_broker.remoting.tasks import Tasks

logger = logging.getLogger(__name__)

INTERVAL_S = 30.0
TIMEOUT_MS = 3000
UNREGISTER_TIMEOUT_MS = 800
FIRST_RETRY_S = 0.2
LAST_RETRY_S = 2.0
RETRY_IN_OUTAGES_S = 10.0


class Heartbeats:
    """Heartbeats to every broker of interest: every 30 s, at once on request, and with back-off to one that is away.

    So a restarted broker soon knows the client again, and can check back or notify it.
    """

    def __init__(self, remoting: RemotingClient, routes: Routes, membership: Callable[[], HeartbeatData]) -> None:
        """`membership` returns the heartbeat's content; it is called for each heartbeat."""
        self._remoting = remoting
        self._routes = routes
        self._membership = membership
        self._tasks = Tasks()
        self._wake = asyncio.Event()
        self._silent: set[str] = set()
        self._remarks: dict[str, str | None] = {}
        """The remark of each broker's last answer: this project's broker says there how members of a group differ."""

    def start(self) -> None:
        """Begins to send heartbeats."""
        self._tasks.start("client-heartbeats", self._beat())

    async def stop(self) -> None:
        """Ends the background work."""
        await self._tasks.stop()

    def send_soon(self) -> None:
        """Sends a heartbeat soon, because the groups changed or a connection broke."""
        self._wake.set()

    async def send(self) -> bool:
        """Sends a heartbeat to all brokers of interest. Returns whether all answered."""
        answered = await self._send_to_all()
        return bool(answered) and all(answered)

    async def send_to_any(self) -> bool:
        """Sends a heartbeat to all brokers of interest. Returns whether any answered."""
        return any(await self._send_to_all())

    async def _send_to_all(self) -> list[bool]:
        data = self._membership()
        body = data.encode()
        masters_only = not data.consumer_data_set
        addresses = [
            address
            for by_id in self._routes.brokers.values()
            for broker_id, address in by_id.items()
            if broker_id == MASTER_ID or not masters_only
        ]
        return await asyncio.gather(*(self._send_to(address, body) for address in addresses))

    async def unregister(self) -> None:
        """Unregisters the groups of this client at the brokers. A broker that is away notices by itself."""
        data = self._membership()
        headers = [
            UnregisterClientRequestHeader(client_id=data.client_id, producer_group=producer.group_name)
            for producer in data.producer_data_set
        ] + [
            UnregisterClientRequestHeader(client_id=data.client_id, consumer_group=consumer.group_name)
            for consumer in data.consumer_data_set
        ]
        addresses = {address for by_id in self._routes.brokers.values() for address in by_id.values()} - self._silent
        await asyncio.gather(*(self._unregister_at(address, header) for address in addresses for header in headers))

    async def _beat(self) -> None:
        rhythm, backoff = Rhythm(INTERVAL_S), Backoff(FIRST_RETRY_S, LAST_RETRY_S, in_outages_s=RETRY_IN_OUTAGES_S)
        while True:
            if await self.send():
                backoff.succeeded()
                again_s = None
            else:
                again_s = backoff.next_pause_s()
            try:
                async with asyncio.timeout_at(rhythm.next_s(again_s)):
                    await self._wake.wait()
            except TimeoutError:
                continue
            if again_s is not None:
                await asyncio.sleep(FIRST_RETRY_S)
            self._wake.clear()

    async def _send_to(self, address: str, body: bytes) -> bool:
        try:
            answer = await ask_for_success(self._remoting, address, RequestCode.HEART_BEAT, body=body, timeout_ms=TIMEOUT_MS)
        except (BrokerUnreachable, BrokerError) as error:
            if address not in self._silent:
                self._silent.add(address)
                what = "refuses this client" if isinstance(error, BrokerError) else "is away"
                logger.warning("broker %s %s (%s); it is tried again", address, what, error)
            self._routes.refresh_soon()
            return False
        if address in self._silent:
            self._silent.discard(address)
            logger.info("broker %s is back", address)
        if answer.remark is not None and answer.remark != self._remarks.get(address):
            logger.warning("broker %s says: %s", address, answer.remark)
        self._remarks[address] = answer.remark
        return True

    async def _unregister_at(self, address: str, header: UnregisterClientRequestHeader) -> None:
        try:
            await ask(self._remoting, address, RequestCode.UNREGISTER_CLIENT, header, timeout_ms=UNREGISTER_TIMEOUT_MS)
        except ClientError as error:
            logger.debug("broker %s was not told of the departure: %s", address, error)
