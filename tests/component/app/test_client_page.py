"""Each block of docs/client.md runs as it stands, one after the other."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from rocketmq_broker.app import Broker

PAGE = Path(__file__).parents[3] / "docs" / "client.md"


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


async def test_the_blocks_of_the_page_run(
    new_broker: Callable[..., Broker], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    broker = new_broker(enable_property_filter=True)
    await broker.start()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NAMESRV_ADDR", ";".join(broker.name_servers))
    try:
        for number, block in enumerate(blocks()):
            code = compile(block, f"docs/client.md, block {number}", "exec", dont_inherit=True)
            async with asyncio.timeout(60):
                await asyncio.to_thread(exec, code, {"__name__": "__main__"})
    finally:
        await broker.stop()
    printed = capsys.readouterr().out
    assert printed.count("SEND_OK") == 4
    for word in (
        "('order-1',) order 1 is paid",
        "batch: SEND_OK",
        "an apple costs 7 €",
        "packed packed sent",
        "audited: large\n",
        "COMMIT_MESSAGE",
        "orders COMMIT_MESSAGE",
        "refunds ROLLBACK_MESSAGE",
        "0 order ",
        "SEND_OK after one answer was lost: True",
    ):
        assert word in printed
