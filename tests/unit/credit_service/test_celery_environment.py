"""Celery reads its own environment variables, which take precedence over the program's settings."""

import pytest

from credit_service.adapters.drain_task import create_celery

URL = "redis://127.0.0.1:6379/5"


@pytest.mark.parametrize(
    "variable", ["CELERY_BROKER_URL", "CELERY_BROKER_READ_URL", "CELERY_BROKER_WRITE_URL", "CELERY_RESULT_BACKEND"]
)
def test_a_variable_that_is_meant_for_another_program_does_not_move_the_tasks(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "redis://another-program:6379/0")
    conf = create_celery(URL).conf
    assert {conf.broker_url, conf.broker_read_url, conf.broker_write_url} == {URL}
    assert conf.result_backend is None, "no task has a result"
