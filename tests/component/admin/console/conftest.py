from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from rocketmq_broker.admin.console import ConsoleSettings, create_console
from rocketmq_broker.admin.session import Target
from rocketmq_broker.testing import SyncRocketMQ
from tests.unit.admin.console.visitor import PAGE_OF_CONSOLE, Visitor


@pytest.fixture
def visitor(rocketmq: SyncRocketMQ) -> Iterator[Visitor]:
    """Yields a visitor of a console for the broker of the fixture `rocketmq`."""
    app = create_console(ConsoleSettings(), Target(namesrv_addr=rocketmq.namesrv_addr))
    with TestClient(app, base_url=PAGE_OF_CONSOLE) as client:
        yield Visitor(client)
