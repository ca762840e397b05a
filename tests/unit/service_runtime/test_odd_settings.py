"""Mistakes in a service's command line or environment give one line and an exit status, never a traceback."""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from credit_service.settings import CreditSettings
from inventory_service.settings import InventorySettings
from order_service.settings import OrderSettings
from service_runtime.settings.common import NamedSettings
from service_runtime.starting.start import run_program

words = st.text(st.characters(exclude_characters="\0", exclude_categories=()), max_size=20).filter(
    lambda text: all(not "\ud800" <= character <= "\udfff" or "\udc80" <= character <= "\udcff" for character in text)
) | st.sampled_from(
    ["", "-1", "9" * 5000, "1e400", "nan", "sqlite://", "redis://:x@[", "http://[", "x\n\x1b[2J", "--", "{}", "\udcff", "\udc80"]
)


def variables_of(kind: type[NamedSettings]) -> list[str]:
    return [str(field.validation_alias) for field in kind.model_fields.values()]


def options_of(kind: type[NamedSettings]) -> list[str]:
    return [f"--{variable.lower().replace('_', '-')}" for variable in variables_of(kind)]


@pytest.mark.parametrize("kind", [OrderSettings, CreditSettings, InventorySettings])
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_odd_settings_end_in_a_sentence(
    kind: type[NamedSettings], data: st.DataObject, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    option = st.sampled_from([*options_of(kind), "--unknown"])
    pairs = data.draw(st.lists(st.tuples(option, words), max_size=3))
    variables = data.draw(st.dictionaries(st.sampled_from(variables_of(kind)), words, max_size=3))
    with monkeypatch.context() as environment:
        for name, value in variables.items():
            environment.setitem(os.environ, name, value)
        try:
            status = run_program("service", kind, lambda _: None, [word for pair in pairs for word in pair])
        except SystemExit as ended:
            status = int(ended.code or 0)
    assert status in (0, 2)
    assert "Traceback" not in capfd.readouterr().err
