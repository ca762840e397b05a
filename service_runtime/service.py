"""Runs the process of a service. Starts its parts, serves until a signal, and stops them."""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from flask import Flask
from prometheus_client import CollectorRegistry
from sqlalchemy import Engine

from rocketmq_broker.client import ClientError
from rocketmq_broker.world import World, current_world
from service_runtime.database.database_url import masked
from service_runtime.http.http_server import HttpServer
from service_runtime.http.readiness import unready_while_stopping
from service_runtime.messaging.consumer_thread import ConsumerThread
from service_runtime.observing.metrics import new_metrics, serve_metrics
from service_runtime.observing.trace_setup import start_tracing, trace_database, trace_requests
from service_runtime.settings.common import DatabaseSettings
from service_runtime.settings.of_services import ServiceSettings
from service_runtime.starting.configured_database import migrate_and_leave, open_to_serve
from service_runtime.starting.start import CannotStart, Command, run_service, stop_on_signals, until_next_signal, wait_for_stop

S = TypeVar("S", bound=ServiceSettings)


class Part(Protocol):
    """A running part of a service: a message producer or a thread."""

    def start(self) -> None:
        """Starts the part. Raises ClientError if a producer cannot join its group."""

    def stop(self) -> None:
        """Stops the part."""


@dataclass(frozen=True, slots=True)
class OpenedService(Generic[S]):
    """The resources from which the parts of a service are built."""

    settings: S
    engine: Engine
    """The engine of the service's database, which has this version's tables."""
    metrics: CollectorRegistry | None
    """The registry of the service's metrics; None if metrics are off."""
    world: World
    """The clock, random numbers and ids for all parts."""
    closing: ExitStack
    """A stack of resources that are closed after all parts have stopped and before the database is closed."""

    @property
    def database(self) -> str:
        """The database URL without the password."""
        return masked(self.settings.database_url.get_secret_value())


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceParts:
    """The parts of a service, before they are started."""

    app: Flask
    consumer: ConsumerThread
    sender: Part
    """The producer. It starts first and stops last, because the application and the consumer need it."""
    threads: Sequence[Part] = ()
    """Threads that start before the consumer and stop after it."""
    places: str
    """The databases and other servers that the service uses, with their URLs, for the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service(Generic[S]):
    """The definition of a service."""

    program: str
    """The name of the package, such as order_service."""
    migrations: str
    """The location of the migrations, for Alembic."""
    settings_class: type[S]
    migration_settings_class: type[DatabaseSettings]
    build: Callable[[OpenedService[S]], ServiceParts]
    commands: Mapping[str, Command[Any]] = field(default_factory=dict)
    """Maps names to the commands other than serving and migrating."""

    def main(self) -> int:
        """Runs the command given on the command line, or serves without one. Returns the exit status of `run_service`."""
        migrate = Command(self.migration_settings_class, partial(migrate_and_leave, migrations=self.migrations))
        return run_service(self.program, self.settings_class, self.serve, {"migrate": migrate, **self.commands})

    def serve(self, settings: S) -> None:
        """Consumes and serves until SIGTERM or SIGINT. Raises CannotStart or DatabaseUnusable."""
        world = current_world()
        with ExitStack() as opened:
            engine = open_to_serve(settings, self.migrations)
            opened.callback(engine.dispose)
            if settings.traces_enabled:
                opened.callback(start_tracing(self.program))
                trace_database(engine)
            stopping = stop_on_signals()
            metrics = new_metrics() if settings.metrics_enabled else None
            parts = self.build(OpenedService(settings, engine, metrics, world, opened))
            unready_while_stopping(parts.app, stopping)
            if metrics is not None:
                serve_metrics(parts.app, metrics, world.steady_s)
            if settings.traces_enabled:
                trace_requests(parts.app)
            server = HttpServer(parts.app, settings, world)
            for group, member in (("producer", parts.sender), ("consumer", parts.consumer)):
                try:
                    member.start()
                except ClientError as error:
                    raise CannotStart(f"cannot join the {group} group: {error}") from error
            # The last callback runs first: running requests and messages need the sender.
            opened.callback(parts.sender.stop)
            for thread in parts.threads:
                thread.start()
                opened.callback(thread.stop)
            server.start()
            opened.callback(server.stop)
            opened.callback(parts.consumer.stop, settings.stop_timeout_s)
            logging.getLogger(self.program).info(
                "%s, name server %s, HTTP on %s", parts.places, settings.namesrv_addr, ", ".join(server.addresses)
            )
            print(f"{self.program.replace('_', ' ')} ready: {server.url}", flush=True)
            wait_for_stop(stopping)
            until_next_signal(server.drain)
