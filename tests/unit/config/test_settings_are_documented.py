from pathlib import Path

import msgspec

from rocketmq_broker.config import BrokerSettings


def test_every_setting_is_explained_to_operators() -> None:
    page = (Path(__file__).parents[3] / "docs" / "operations.md").read_text()
    names = [field.encode_name for field in msgspec.structs.fields(BrokerSettings)]

    assert [name for name in names if f"`{name}`" not in page] == []
