"""Tests that the code blocks of docs/client.md and of the API's pages run unchanged, in sequence."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from rocketmq_broker import client
from rocketmq_broker.app import Broker

DOCS = Path(__file__).parents[3] / "docs"
API = {
    "producers": "SEND_OK",
    "transactions": "COMMIT_MESSAGE",
    "consumers": "order 1 is paid",
    "messages": "order 1 is paid paid ('order-1',)",
    "connections": "SEND_OK",
    "errors": "stored",
}
"""What the example of each page of the API prints."""


def blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", (DOCS / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


async def test_the_blocks_of_the_page_run(
    start_broker: Callable[..., Awaitable[Broker]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    broker = await start_broker(enable_property_filter=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NAMESRV_ADDR", ";".join(broker.name_servers))
    for number, block in enumerate(blocks("client")):
        code = compile(block, f"docs/client.md, block {number}", "exec", dont_inherit=True)
        async with asyncio.timeout(60):
            await asyncio.to_thread(exec, code, {"__name__": "__main__"})
    printed = capsys.readouterr().out
    assert printed.count("SEND_OK") == 5
    for word in (
        "('order-1',) order 1 is paid",
        "batch: SEND_OK",
        "an apple costs 7 €",
        "packed packed sent",
        "audited: large\n",
        "COMMIT_MESSAGE",
        "shop-orders COMMIT_MESSAGE",
        "refunds ROLLBACK_MESSAGE",
        "0 order ",
        "SEND_OK after one answer was lost: True",
    ):
        assert word in printed


async def test_the_example_of_each_page_of_the_api_runs(
    start_broker: Callable[..., Awaitable[Broker]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broker = await start_broker()
    monkeypatch.setenv("NAMESRV_ADDR", ";".join(broker.name_servers))
    for page, printed in API.items():
        (block,) = blocks(f"reference/{page}")
        async with asyncio.timeout(60):
            await asyncio.to_thread(exec, compile(block, f"docs/reference/{page}.md", "exec"), {"__name__": "__main__"})
        assert capsys.readouterr().out == f"{printed}\n"


def test_each_name_of_the_client_stands_on_one_page_of_the_api() -> None:
    shown = [
        name
        for page in API
        for name in re.findall(r"^::: rocketmq_broker\.client\.(\w+)$", (DOCS / f"reference/{page}.md").read_text(), re.M)
    ]
    assert sorted(shown) == sorted(client.__all__)
