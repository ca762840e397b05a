"""One broker, from start to stop (RocketMQ's BrokerController)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

from rocketmq_broker.app.access import guard
from rocketmq_broker.app.errors import StartError
from rocketmq_broker.app.opened_store import OpenedStore, open_store
from rocketmq_broker.app.pace import Pace
from rocketmq_broker.app.ports import BrokerPorts, cannot_listen, listening
from rocketmq_broker.app.serving import Serving, build_serving
from rocketmq_broker.config import BrokerSettings
from rocketmq_broker.message.errors import IllegalMessage
from rocketmq_broker.nameserver.server import NameServer
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.remoting.client import RemotingClient
from rocketmq_broker.remoting.connections.connection import Connection, RequestHandler
from rocketmq_broker.remoting.connections.memory_budget import MemoryBudget
from rocketmq_broker.remoting.dispatcher import Dispatcher, RequestRefused
from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.remoting.tls import ClientTls, ServerContexts, ServerTls, TlsMode, TlsUnusable
from rocketmq_broker.server.access import AccessControl
from rocketmq_broker.server.clients import consumer_notices
from rocketmq_broker.server.clients.lock_processor import LockProcessor
from rocketmq_broker.server.durability.flush_thread import USUAL_FLUSHING
from rocketmq_broker.server.durability.flusher import NewFlushing
from rocketmq_broker.server.durability.group_commit import GroupCommit
from rocketmq_broker.server.popping import REST_S
from rocketmq_broker.server.schedule import delayed_delivery
from rocketmq_broker.server.schedule.broker_clock import BrokerClock
from rocketmq_broker.server.statistics.flow_counter import SAMPLE_INTERVAL_S
from rocketmq_broker.server.topics.identity import BrokerIdentity
from rocketmq_broker.store import FileSystem, FlushDiskType, StoreError, StoreUnwritable
from rocketmq_broker.world import current_world

if TYPE_CHECKING:
    from rocketmq_broker.metrics import MetricsServer
    from rocketmq_broker.proxy import GrpcProxy

REFUSALS: dict[type[Exception], ResponseCode] = {
    IllegalMessage: ResponseCode.MESSAGE_ILLEGAL,
    StoreUnwritable: ResponseCode.SERVICE_NOT_AVAILABLE,
    OSError: ResponseCode.SYSTEM_ERROR,
}

logger = logging.getLogger(__name__)

T = TypeVar("T")

_REPLIES_END_WITHIN_S: Final = 1.0
"""The maximum time in seconds that a stopping broker waits for pending replies. Only a requester that hangs takes longer."""


class Broker:
    """A broker. Runs a name server in the same process unless the settings contain name server addresses."""

    def __init__(
        self,
        settings: BrokerSettings,
        *,
        pace: Pace = Pace(),  # noqa: B008 - frozen
        files: FileSystem | None = None,
        new_flushing: NewFlushing = USUAL_FLUSHING,
        requests_to: Callable[[RequestHandler], RequestHandler] | None = None,
    ) -> None:
        """Creates a broker that is not started. The broker uses the time, random numbers and host names of `current_world()`.

        Tests can replace the disk (`files`, `new_flushing`), and wrap the broker's request handler (`requests_to`).
        """
        self._settings = settings
        self._world = world = current_world()
        self._pace = pace
        self._files = files
        self._new_flushing = new_flushing
        self._clock = BrokerClock(world.wall_ns, world.steady_ns)
        self._tasks = Tasks()
        self._dispatcher = Dispatcher(refusals=REFUSALS)
        self._contexts, client_tls = _tls(settings)
        self._memory = MemoryBudget(settings.server_max_buffered_bytes)
        self._requests: RequestHandler = self._dispatcher if requests_to is None else requests_to(self._dispatcher)
        self._ports = BrokerPorts(
            settings.bind_address,
            settings.listen_port,
            self._requests,
            self._contexts,
            memory=self._memory,
            max_connections=settings.server_max_connections,
            steady_ns=world.steady_ns,
        )
        self._name_servers_peer = Dispatcher()
        self._client = RemotingClient(self._name_servers_peer, tls=client_tls)
        self._disk_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="offsets")
        self._ip = ""
        self._name_server: NameServer | None = None
        self._access: AccessControl | None = None
        self._store: OpenedStore | None = None
        self._serving: Serving | None = None
        self._metrics: MetricsServer | None = None
        self._proxy: GrpcProxy | None = None
        self.cannot_go_on = asyncio.Event()
        """An event that is set when the broker must stop. The reason is logged.

        There are two reasons. Another broker may be using the store, or the disk has failed and only a restart can determine its
        content.
        """

    @property
    def identity(self) -> BrokerIdentity:
        """The broker's names and address. The port is valid once the broker has started."""
        return BrokerIdentity(
            cluster=self._settings.broker_cluster_name,
            name=self._settings.broker_name,
            broker_id=self._settings.broker_id,
            host=self._settings.broker_ip1,
            port=self._ports.port,
            ip=self._ip,
        )

    @property
    def name_servers(self) -> tuple[str, ...]:
        """The addresses of the name servers with which the broker registers."""
        if self._name_server is None:
            return self._settings.name_servers
        return (f"{_reachable(self._settings.bind_address)}:{self._name_server.port}",)

    @property
    def metrics_url(self) -> str | None:
        """The URL for Prometheus, or None if metrics are disabled."""
        if self._metrics is None:
            return None
        return f"http://{_reachable(self._metrics.host)}:{self._metrics.port}/metrics"

    @property
    def grpc_endpoint(self) -> str | None:
        """The address for RocketMQ 5's clients, or None if gRPC is disabled."""
        return None if self._proxy is None else f"{_reachable(self._settings.bind_address)}:{self._proxy.port}"

    def next_expiry_ms(self) -> int | None:
        """Returns the time at which the next files expire if no more messages arrive, in milliseconds since the epoch.

        Returns None if no files will expire. Raises OSError.
        """
        return self._store.messages.expiry.next_due_ms(self._clock()) if self._store is not None else None

    async def start(self) -> None:
        """Starts the broker. Returns once it serves requests. If the start fails, stops everything and raises StartError."""
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stops accepting requests, responds to requests in progress, and saves everything to disk.

        The order is essential. Nothing is stored after the last flush, and no response is sent for data that is not stored. The
        method also cleans up after a failed start.
        """
        # Accept no new clients, and stop background work: no check-backs, no delayed delivery, no retention.
        self._ports.stop_listening()
        if self._proxy is not None:
            self._proxy.stop_listening()
        serving, store = self._serving, self._store
        await self._tasks.stop()
        # Let clients find other brokers while this one still responds.
        if serving is not None:
            await serving.registration.unregister()
        # Nothing is appended after this, so the next flush is the last one. At its end all waiting senders get their responses.
        self._dispatcher.stop()
        if serving is not None:
            await serving.context.group_commit.stop()
            # A response to a reply is sent after the reply was stored, pushed and confirmed, so it comes after the flush.
            await serving.replies.settle(_REPLIES_END_WITHIN_S)
            await serving.replies.stop()
        # All responses are sent or buffered: let the connections send the rest and close.
        if self._proxy is not None:
            await self._proxy.stop()
        await self._ports.stop()
        await self._client.close()
        if self._metrics is not None:
            await asyncio.to_thread(self._metrics.stop)
        # Stop the name server after the broker has unregistered, and after all clients that may request the broker's address.
        if self._name_server is not None:
            await self._name_server.stop()
        # The thread may still write offsets. Stop it first, so that only one thread writes the tables.
        self._disk_thread.shutdown()
        # Do not write to a store that another broker may be using.
        if serving is not None and store is not None and not store.messages.writability.is_given_up:
            self._persist(serving, store)
        # Do this last: closing removes the abort file, which means that everything is on disk.
        if store is not None:
            store.messages.close()
        self._store = self._serving = None

    async def _start(self) -> None:
        settings = self._settings
        self._ip = await _ip_of(settings.broker_ip1)
        if not settings.name_servers:
            await self._start_name_server()
        await self._ports.bind()
        store = self._store = open_store(settings, self.identity, self._clock(), self._files)
        group_commit = GroupCommit(
            store.messages,
            FlushDiskType(settings.flush_disk_type),
            async_flush_interval_s=settings.flush_interval_commit_log / 1000,
            flush_timeout_s=settings.sync_flush_timeout / 1000,
            checkpoint_interval_s=self._pace.checkpoint_s,
            new_flushing=self._new_flushing,
            on_broken=self._end_with_store,
        )
        try:
            await group_commit.start()
            self._serving = build_serving(
                settings,
                self.identity,
                store,
                group_commit,
                self._dispatcher,
                self._tasks,
                self._client,
                self.name_servers,
                self._clock,
                self._world.random,
                self._pace,
            )
        except (StoreError, OSError) as error:
            raise StartError(f"cannot use the store {settings.store_root}: {error}") from None
        registration = self._serving.registration
        self._name_servers_peer.add_disconnect_listener(lambda connection: registration.connection_ended())
        self._access = guard(settings, self.identity, store.messages, self._dispatcher, self._tasks, self._clock)
        if self._access is not None:
            self._serving.transactions.check_service.restrict_checks(self._access.may_check)
        self._start_metrics(self._serving, store)
        self._start_work(self._serving, store)
        await self._ports.start()
        await self._start_proxy(self._serving)
        await self._serving.registration.registered()

    async def _start_name_server(self) -> None:
        settings = self._settings
        try:
            kv_config_path = settings.store_root / "config" / "kvConfig.json" if self._files is None else None
            server = NameServer(
                settings.bind_address,
                settings.namesrv_listen_port,
                kv_config_path=kv_config_path,
                steady_ns=self._world.steady_ns,
                scan_interval_s=self._pace.silent_brokers_s,
                guard_changes=self._guard_changes if settings.acl_enable else None,
                contexts=self._contexts,
                memory=self._memory,
            )
        except (OSError, ValueError) as error:
            raise StartError(f"cannot read the file {kv_config_path}: {error}") from None
        await listening(server.start, settings.bind_address, settings.namesrv_listen_port, "namesrvListenPort")
        self._name_server = server

    def _guard_changes(self, connection: Connection, command: RemotingCommand) -> None:
        """Raises RequestRefused if the sender may not change the name server's data.

        Refuses all changes until the accounts have been read, because the name server starts earlier.
        """
        if self._access is None:
            raise RequestRefused(ResponseCode.SYSTEM_BUSY, "the broker is starting; try again in a few seconds")
        self._access.check(connection, command)

    def _start_metrics(self, serving: Serving, store: OpenedStore) -> None:
        settings = self._settings
        if settings.metrics_exporter_type == "DISABLE":
            return
        # Imported here, so that brokers without metrics save the memory and start-up time of the Prometheus client.
        from rocketmq_broker.app.metrics import start_metrics

        try:
            self._metrics = start_metrics(settings, store, serving, lambda: self._ports.connections, self._clock)
        except OSError as error:
            where = (settings.metrics_host, settings.metrics_prom_exporter_port, "metricsPromExporterPort")
            raise cannot_listen(error, *where) from None

    async def _start_proxy(self, serving: Serving) -> None:
        if self._settings.grpc_server_port < 0:
            return
        # Imported here, so that brokers without gRPC save the memory and start-up time of the gRPC library.
        from rocketmq_broker.app.proxy import start_proxy

        self._proxy = await start_proxy(
            self._settings, serving, self._requests, self._contexts, self._memory, self._access, self._world.steady_ns
        )

    def _start_work(self, serving: Serving, store: OpenedStore) -> None:
        settings, tasks, context, pace = self._settings, self._tasks, serving.context, self._pace
        tasks.every(pace.wall_clock_s, "following the wall clock", self._clock.follow)
        tasks.start("following the certificate", self._contexts.follow())
        tasks.start("registration", serving.registration.run())
        serving.transactions.start(tasks)
        pulls = serving.pull_processor
        tasks.when_due("answering overdue pulls", pulls.answer_overdue, pulls.alarm, rest_s=0)
        popping = serving.popping
        tasks.when_due("popped messages", popping.work, popping.alarm, rest_s=REST_S)
        tasks.every(pace.upkeep_s, "the pop log", popping.check_points.keep)
        notices = context.clients.consumer_notices
        tasks.when_due("notices to consumers", notices.send_pending, notices.alarm, rest_s=consumer_notices.REST_S)
        delayed = serving.delayed_delivery
        tasks.when_due("delayed delivery", delayed.deliver_due, delayed.alarm, rest_s=delayed_delivery.REST_S)
        parked = serving.parked
        tasks.when_due("parked messages", parked.read_arrived, parked.alarm, rest_s=parked.REST_S)
        tasks.every(pace.upkeep_s, "expired parked messages", parked.forget_expired)
        tasks.every(pace.upkeep_s, "statistics", lambda: context.statistics.sample(self._clock()))
        tasks.every(SAMPLE_INTERVAL_S, "figures of topics and groups", lambda: context.statistics.sample_flows(self._clock()))
        tasks.every(pace.upkeep_s, "the store's lock", lambda: self._check_lock(context.group_commit, store))
        tasks.every(60, "storing times", context.group_commit.put_times.begin_minute)
        for name, table in (("topics to disk", context.topic_table), ("groups to disk", context.subscription_groups)):
            tasks.when_due(name, table.persist_changes, table.has_changed, rest_s=1)
        tasks.every(pace.silent_clients_s, "closing silent clients", context.clients.processor.close_expired)
        tasks.start("forgetting expired locks", self._forget_locks(context.clients.locks))
        tasks.start("offsets to disk", self._keep_offsets(store))
        tasks.every(settings.flush_delay_offset_interval / 1000, "delay offsets to disk", serving.delayed_delivery.persist)
        tasks.start("retention", serving.cleaner.run(settings.clean_resource_interval / 1000))

    def _end_with_store(self, reason: str) -> None:
        logger.critical("%s. This broker refuses further messages and exits; the next start recovers the store", reason)
        self.cannot_go_on.set()

    def _check_lock(self, group_commit: GroupCommit, store: OpenedStore) -> None:
        problem = store.messages.lock.what_is_wrong()
        if problem is not None and not store.messages.writability.is_given_up:
            logger.critical("%s. This broker refuses further messages and exits", problem)
            group_commit.give_up(problem)
            self.cannot_go_on.set()

    async def _forget_locks(self, locks: LockProcessor) -> None:
        while True:
            await asyncio.sleep(self._pace.silent_clients_s)
            for _ in locks.forget_expired():
                await asyncio.sleep(0)

    async def _keep_offsets(self, store: OpenedStore) -> None:
        """Saves the consumer offsets periodically. Another thread writes them, because syncing is slow."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                if store.consumer_offsets.is_to_be_written:
                    await loop.run_in_executor(self._disk_thread, await _between_turns(store.consumer_offsets.writer()))
            except OSError as error:
                logger.error("cannot save the consumer offsets: %s", error)
            await asyncio.sleep(self._settings.flush_consumer_offset_interval / 1000)

    def _persist(self, serving: Serving, store: OpenedStore) -> None:
        for persist in (
            serving.context.topic_table.persist_changes,
            serving.context.subscription_groups.persist_changes,
            serving.delayed_delivery.persist,
            serving.transactions.notes.finish,
            store.consumer_offsets.persist,
        ):
            try:
                persist()
            except OSError as error:
                logger.error("cannot save all data at shutdown: %s", error)


async def _between_turns(steps: Generator[None, None, T]) -> T:
    """Runs work step by step, and returns its result. Lets the event loop run other tasks after each step."""
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            result: T = ended.value
            return result
        await asyncio.sleep(0)


def _tls(settings: BrokerSettings) -> tuple[ServerContexts, ClientTls | None]:
    """Returns the TLS contexts of the ports, and the TLS settings for connections to name servers. Raises StartError."""
    try:
        server, client = ServerTls.from_properties(settings.tls), ClientTls.from_properties(settings.tls)
        if client is None and server.mode is TlsMode.ENFORCING and not settings.name_servers:
            # The name server in this process accepts only TLS, and uses this broker's certificate.
            client = ClientTls(
                auth_server=False, cert_path=server.cert_path, key_path=server.key_path, key_password=server.key_password
            )
        return ServerContexts(server), client
    except TlsUnusable as error:
        raise StartError(str(error)) from None


async def _ip_of(host: str) -> str:
    """Returns the IP address of a host name, preferably IPv4. Raises StartError."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None)
    except (OSError, UnicodeError) as error:
        raise StartError(f"brokerIP1={host}: {error}") from None
    return min((str(address[0]) for *_, address in found), key=lambda ip: ":" in ip)


def _reachable(bind_address: str) -> str:
    """Returns the address at which this machine can reach a listener on `bind_address`."""
    return {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "[::1]"}.get(bind_address, bind_address)
