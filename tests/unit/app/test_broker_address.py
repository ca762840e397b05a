"""What brokerIP1 may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.app import Broker, StartError
from broker.config import BrokerSettings
from broker.message.record import host_bytes


def broker(root: Path, host: str) -> Broker:
    return Broker(
        BrokerSettings(
            store_path_root_dir=str(root), listen_port=0, namesrv_listen_port=0, max_hash_slot_num=100, max_index_num=400,
            maped_file_size_commit_log=1 << 20, broker_ip1=host,
        )
    )  # fmt: skip


async def test_it_may_be_a_name_which_clients_are_told_and_records_hold_the_address_of(tmp_path: Path) -> None:
    named = broker(tmp_path, "localhost")
    await named.start()
    identity = named.identity
    await named.stop()
    assert identity.address == f"localhost:{identity.port}"
    assert identity.store_host == host_bytes("127.0.0.1", identity.port)


@pytest.mark.parametrize("host", ["", "a..b", "no.such.host.invalid"])
async def test_a_name_that_nobody_has_is_a_start_error(tmp_path: Path, host: str) -> None:
    with pytest.raises(StartError, match=f"brokerIP1={host}: "):
        await broker(tmp_path, host).start()
