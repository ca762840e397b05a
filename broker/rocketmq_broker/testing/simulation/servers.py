"""Real name servers and brokers as programs of a simulated world, each in its own process."""

from collections.abc import Mapping
from typing import Final

from rocketmq_broker.app import Broker
from rocketmq_broker.app.pace import Pace
from rocketmq_broker.config import load_settings
from rocketmq_broker.nameserver.server import NameServer
from rocketmq_broker.remoting.connections.connection import RequestHandler
from rocketmq_broker.remoting.network import connect_by, current_network
from rocketmq_broker.testing.simulation.like_apache import LikeApacheInterceptors
from rocketmq_broker.testing.simulation.process import SimulatedProcess
from rocketmq_broker.testing.simulation.world import Program, SimulatedWorld
from rocketmq_broker.testing.transactions import Inspection

NAME_SERVER_PORT: Final = 9876
BROKER_PORT: Final = 10911
STORE: Final = "/store"
PACE: Final = Pace(
    upkeep_s=30.0, checkpoint_s=30.0, silent_clients_s=30.0, silent_brokers_s=10.0, idle_notes_s=30.0, wall_clock_s=1.0,
    max_sleep_s=10.0,
)  # fmt: skip
_SETTINGS: Final[Mapping[str, str]] = {
    "storePathRootDir": STORE,
    "listenPort": str(BROKER_PORT),
    "tls.server.mode": "disabled",
    "mapedFileSizeCommitLog": str(1 << 20),
    "mapedFileSizeConsumeQueue": str(20 * 1000),
    "maxHashSlotNum": "1000",
    "maxIndexNum": "20000",
}


def name_server(world: SimulatedWorld, name: str = "names") -> Program:
    """Adds a machine with a name server, without starting it."""

    async def begin(process: SimulatedProcess) -> None:
        server = NameServer(
            process.address,
            NAME_SERVER_PORT,
            kv_config_path=None,
            steady_ns=process.world.steady_ns,
            scan_interval_s=PACE.silent_brokers_s,
        )
        await server.start()

    return world.program(name, world.machine(name), begin)


class BrokerProgram(Program):
    """A broker on its own machine."""

    def __init__(
        self,
        world: SimulatedWorld,
        name: str,
        name_servers: str,
        settings: Mapping[str, str] | None = None,
        as_apache: int | None = None,
    ) -> None:
        """Creates a program. `settings` are settings of broker.conf. `as_apache` is the Apache release to imitate, or None."""
        machine = world.machine(name)
        super().__init__(world, name, machine, self._serve)
        self._properties = {
            **_SETTINGS,
            "brokerName": name,
            "brokerIP1": machine.address,
            "bindAddress": machine.address,
            "namesrvAddr": name_servers,
            **(settings or {}),
        }
        self._handler: RequestHandler | None = None
        self._interceptors = (
            None if as_apache is None else LikeApacheInterceptors(world.history, name, as_apache, lambda: world.elapsed_s)
        )

    @property
    def inspection(self) -> Inspection:
        """An Inspection that reads the state of the running broker."""
        assert self._handler is not None, f"{self.name} has never started"
        return Inspection(self._handler, self.name)

    async def _serve(self, process: SimulatedProcess) -> None:
        files = self.machine.disk.opened()
        settings = load_settings(None, self._properties).settings

        def keep(handler: RequestHandler) -> RequestHandler:
            self._handler = handler
            return handler if self._interceptors is None else self._interceptors.before(handler, process, settings)

        if self._interceptors is not None:
            connect_by(self._interceptors.network(current_network()))
        server = Broker(settings, pace=PACE, files=files, new_flushing=self.machine.disk.new_flushing(files), requests_to=keep)
        await server.start()
        process.run(self._end_with(server))

    async def _end_with(self, server: Broker) -> None:
        """Ends the process once the broker cannot continue. As in production, the supervisor then restarts the process."""
        process = self.process
        await server.cannot_go_on.wait()
        await server.stop()
        if self.process is process:
            self.kill()


def broker(
    world: SimulatedWorld,
    name: str,
    name_servers: str,
    settings: Mapping[str, str] | None = None,
    as_apache: int | None = None,
) -> BrokerProgram:
    """Adds a machine with a broker, without starting it. `settings` are settings of broker.conf.

    With `as_apache` the broker imitates the weaknesses of Apache's broker: 4 means release 4.9.7, 5 means 5.3.3.
    """
    return world.add(BrokerProgram(world, name, name_servers, settings, as_apache))
