"""The benchmark of the event loop has a question for each code that broker and name server answer."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from benchmarks.longest_stop import rows
from benchmarks.longest_stop.__main__ import rows_by_name
from benchmarks.longest_stop.by_code import AT_BROKER, AT_NAME_SERVER
from rocketmq_broker.app import Broker
from rocketmq_broker.config import load_settings
from rocketmq_broker.nameserver.server import NameServer
from rocketmq_broker.protocol.codes import AdminRequestCode, RequestCode


async def test_each_code_that_the_broker_answers_has_a_row(tmp_path: Path) -> None:
    settings = {"listenPort": "0", "namesrvListenPort": "0", "storePathRootDir": str(tmp_path / "store")}
    broker = Broker(load_settings(None, settings).settings)
    await broker.start()
    answered = broker._dispatcher.codes
    await broker.stop()
    acl = {code for code in RequestCode if "ACL" in code.name or code is RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG}
    assert set(AT_BROKER) | acl == answered | acl
    assert acl <= set(AT_BROKER)
    assert set(AdminRequestCode) <= set(AT_BROKER)


async def test_each_code_that_the_name_server_answers_has_a_row() -> None:
    name_server = NameServer("127.0.0.1", 0, kv_config_path=None, steady_ns=lambda: 0)
    assert set(AT_NAME_SERVER) == name_server._server._handler.codes


def test_each_row_has_a_name_of_its_own_and_says_what_it_does() -> None:
    files = [path for path in Path(rows.__path__[0]).rglob("*.py") if path.name != "__init__.py"]
    found = rows_by_name()
    assert sorted(found) == sorted(path.stem for path in files)
    assert all(import_module(module).WHAT for module in found.values())
