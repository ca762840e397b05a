"""Sends heartbeats that contain this client's groups (RocketMQ's MQClientInstance.sendHeartbeatToAllBroker)."""

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
from rocketmq_broker.protocol.headers.group import UnregisterClientRequestHeader
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
    """Sends heartbeats to every broker in the client's routes, every 30 s and on request. Retries with back-off after a failure.

    The client is therefore registered again soon after a broker restarts, so that the broker can send check-backs and
    notifications.
    """

    def __init__(self, remoting: RemotingClient, routes: Routes, membership: Callable[[], HeartbeatData]) -> None:
        """Creates the sender without starting it. `membership` is called for each heartbeat, and returns its content."""
        self._remoting = remoting
        self._routes = routes
        self._membership = membership
        self._tasks = Tasks()
        self._wake = asyncio.Event()
        self._unreachable: set[str] = set()
        self._remarks: dict[str, str | None] = {}
        """The remark in each broker's last answer.

        This project's broker uses it to report that a group's subscriptions differ.
        """

    def start(self) -> None:
        """Starts sending heartbeats."""
        self._tasks.start("client-heartbeats", self._beat())

    async def stop(self) -> None:
        """Stops the background task."""
        await self._tasks.stop()

    def send_soon(self) -> None:
        """Schedules a heartbeat. Call this method after the groups have changed or a connection has broken."""
        self._wake.set()

    async def send(self) -> bool:
        """Sends a heartbeat to every broker in the client's routes. Returns True if all of them responded."""
        answered = await self._send_to_all()
        return bool(answered) and all(answered)

    async def send_to_any(self) -> bool:
        """Sends a heartbeat to every broker in the client's routes. Returns True if at least one responded."""
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
        """Unregisters this client's groups from all reachable brokers. Unreachable brokers remove the client after a timeout."""
        data = self._membership()
        headers = [
            UnregisterClientRequestHeader(client_id=data.client_id, producer_group=producer.group_name)
            for producer in data.producer_data_set
        ] + [
            UnregisterClientRequestHeader(client_id=data.client_id, consumer_group=consumer.group_name)
            for consumer in data.consumer_data_set
        ]
        addresses = {address for by_id in self._routes.brokers.values() for address in by_id.values()} - self._unreachable
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
            if address not in self._unreachable:
                self._unreachable.add(address)
                what = "refused the heartbeat" if isinstance(error, BrokerError) else "is unreachable"
                logger.warning("broker %s %s (%s); retrying", address, what, error)
            self._routes.refresh_soon()
            return False
        if address in self._unreachable:
            self._unreachable.discard(address)
            logger.info("broker %s is reachable again", address)
        if answer.remark is not None and answer.remark != self._remarks.get(address):
            logger.warning("broker %s reports: %s", address, answer.remark)
        self._remarks[address] = answer.remark
        return True

    async def _unregister_at(self, address: str, header: UnregisterClientRequestHeader) -> None:
        try:
            await ask(self._remoting, address, RequestCode.UNREGISTER_CLIENT, header, timeout_ms=UNREGISTER_TIMEOUT_MS)
        except ClientError as error:
            logger.debug("could not unregister from broker %s: %s", address, error)
