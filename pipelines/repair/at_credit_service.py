"""Executes the steps that the credit service performs, with the idempotent request PUT /repairs/{id}."""

from typing import Final

import httpx

from pipelines.repair.plan import Action, RepairStep, StepOutcome, done, done_before, failed

TIMEOUT_S: Final = 20.0
_DONE_NOW: Final = 201
_DONE_BEFORE: Final = 200


class CreditServiceSteps:
    """Executes `reverse` and `rebuild_balance`."""

    def __init__(self, url: str, key: str, transport: httpx.BaseTransport | None = None) -> None:
        """`url` is the service's URL. `key` is the content of its CREDIT_REPAIR_KEY_FILE. `transport` is for tests."""
        headers = {"Authorization": f"Bearer {key}"}
        self._client = httpx.Client(base_url=url, headers=headers, timeout=TIMEOUT_S, transport=transport, trust_env=False)

    def close(self) -> None:
        """Closes the connection."""
        self._client.close()

    def carry_out(self, step: RepairStep) -> StepOutcome:
        """Executes the step, unless it is done. Returns `failed` if the service refuses or does not respond. Raises no error."""
        try:
            answer = self._client.put(f"/repairs/{step.id}", json=_wanted(step))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return failed(f"the credit service does not answer: {error}")
        if answer.status_code not in (_DONE_NOW, _DONE_BEFORE):
            return failed(f"the credit service refused: {_reason(answer)}")
        said = answer.json()
        change = f"balance of {said['customer']}: {said['points_before']} points before, {said['points_after']} after"
        return done(change) if answer.status_code == _DONE_NOW else done_before(change)


def _wanted(step: RepairStep) -> dict[str, object]:
    wanted: dict[str, object] = {"action": step.action.value, "reason": f"{step.finding}, {step.cause}"}
    if step.action is Action.REVERSE:
        return wanted | {"order_id": step.subject, "amount_cents": step.credit_cents}
    return wanted | {"customer": step.subject}


def _reason(answer: httpx.Response) -> str:
    try:
        problem = answer.json()
        return str(problem.get("detail") or problem.get("title") or answer.status_code)
    except (ValueError, AttributeError):
        return f"status {answer.status_code}"
