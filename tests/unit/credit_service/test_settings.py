from pathlib import Path

import pytest

from credit_service.settings import CreditSettings, LedgerSettings, WorkerSettings

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("settings", [CreditSettings, WorkerSettings])
def test_every_variable_is_explained_to_operators(settings: type[LedgerSettings]) -> None:
    pages = (ROOT / "docs" / "repairing.md").read_text() + (ROOT / "docs" / "services.md").read_text()
    names = [str(field.validation_alias) for field in settings.model_fields.values()]
    assert [name for name in names if f"`{name}`" not in pages] == []
