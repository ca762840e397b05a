"""A command line of the operators' tool, with the test's broker."""

import pytest

from rocketmq_broker.testing import SyncRocketMQ
from tests.unit.admin.command_line import CommandLine


@pytest.fixture
def admin(rocketmq: SyncRocketMQ) -> CommandLine:
    return CommandLine(rocketmq)
