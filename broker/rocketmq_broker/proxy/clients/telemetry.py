"""The method Telemetry, which exchanges settings and sends the broker's commands to a client (ClientActivity.telemetry)."""

import asyncio
import logging

from google.protobuf.message import DecodeError

from rocketmq_broker.proxy.answers import OK, CallRefused
from rocketmq_broker.proxy.clients.client_settings import SettingsAnswers
from rocketmq_broker.proxy.clients.memberships import register
from rocketmq_broker.proxy.connections.call import Call, CallEnded
from rocketmq_broker.proxy.connections.caller import Caller
from rocketmq_broker.proxy.connections.session import ClientSession, ClientSessions, Outbox
from rocketmq_broker.proxy.protos import definition_pb2 as api
from rocketmq_broker.proxy.protos import service_pb2 as service

logger = logging.getLogger(__name__)


class Telemetry:
    """The telemetry of all clients. A client's session ends when its telemetry ends."""

    def __init__(self, sessions: ClientSessions, answers: SettingsAnswers) -> None:
        self._sessions = sessions
        self._answers = answers

    async def serve(self, caller: Caller, call: Call) -> None:
        """Reads and writes commands until the call or the session ends. Raises CallRefused for invalid settings."""
        session = self._sessions.of(caller)
        outbox = session.open_telemetry(call.hold)
        refusals: list[CallRefused | CallEnded] = []
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(self._read(caller, session, outbox, call, refusals))
            try:
                while (command := await outbox.get()) is not None:
                    await call.write(command)
                    outbox.taken()
            except CallEnded as end:
                refusals.append(end)
            finally:
                reading.cancel()
                session.telemetry_ended(outbox)
        if refusals:
            raise refusals[0]

    async def _read(
        self, caller: Caller, session: ClientSession, outbox: Outbox, call: Call, refusals: list[CallRefused | CallEnded]
    ) -> None:
        held_bytes = 0
        try:
            while (data := await call.read()) is not None:
                command = service.TelemetryCommand.FromString(data)
                if command.WhichOneof("command") == "settings":
                    await register(caller, session, command.settings)
                    session.settings = command.settings
                    call.hold(len(data) - held_bytes)
                    held_bytes = len(data)
                    session.send(service.TelemetryCommand(status=OK, settings=self._answers.of(caller, command.settings)))
                    await outbox.join()  # further settings are read only after the client has read this answer
        except DecodeError:
            refusals.append(CallRefused(api.BAD_REQUEST, "cannot decode the TelemetryCommand"))
        except (CallRefused, CallEnded) as refusal:
            refusals.append(refusal)
        finally:
            session.telemetry_ended(outbox)
