from pathlib import Path

import pytest

from credit_service import settings as credits
from inventory_service import settings as inventory
from order_service import settings as orders
from service_runtime.settings.common import NamedSettings

DOCUMENTATION = (Path(__file__).resolve().parents[3] / "docs" / "services.md").read_text()


@pytest.mark.parametrize(
    "settings", [orders.OrderSettings, credits.CreditSettings, credits.WorkerSettings, inventory.InventorySettings]
)
def test_the_manual_names_every_setting(settings: type[NamedSettings]) -> None:
    names = [str(info.validation_alias) for info in settings.model_fields.values()]
    assert [name for name in names if f"`{name}`" not in DOCUMENTATION] == []
