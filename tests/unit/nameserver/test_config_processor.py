"""Tests the requests that read a name server's settings, and that changes of the settings are refused."""

import pytest

from rocketmq_broker.nameserver.admin_processor import ConfigProcessor
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.command import encode_request
from rocketmq_broker.protocol.frame import FrameDecoder
from rocketmq_broker.remoting.dispatcher import RequestRefused

PROCESSOR = ConfigProcessor(lambda: {"listenPort": "9876", "kvConfigPath": "/kv.json"})


def test_the_settings_are_told_one_on_each_line() -> None:
    (command,) = FrameDecoder().feed(encode_request(RequestCode.GET_NAMESRV_CONFIG, None, opaque=1))
    (answer,) = FrameDecoder().feed(PROCESSOR.get_config(None, command))
    assert answer.body == b"listenPort=9876\nkvConfigPath=/kv.json\n"


def test_a_change_is_refused_instead_of_ignored() -> None:
    (command,) = FrameDecoder().feed(encode_request(RequestCode.UPDATE_NAMESRV_CONFIG, None, b"listenPort=1\n", opaque=1))
    with pytest.raises(RequestRefused):
        PROCESSOR.update_config(None, command)
