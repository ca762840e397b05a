"""The command `repair`: `--plan FILE` writes what it would do, `--apply FILE` does it."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from broker.admin.errors import AdminError
from broker.admin.session import Target, opened_session
from pipelines.arguments import (
    Brokers,
    ConsumerGroup,
    CreditDatabase,
    CreditPasswordFile,
    Grace,
    Master,
    Memory,
    OrderDatabase,
    OrderPasswordFile,
    Output,
    Overdue,
    SparkLog,
    Stores,
    Topic,
)
from pipelines.errors import PlanUnusable
from pipelines.judging.cut_off import GRACE_SECONDS, OVERDUE_SECONDS, CutOff
from pipelines.judging.log_events import Route
from pipelines.repair.applying import carry_out, needs_brokers
from pipelines.repair.at_brokers import BrokerSteps
from pipelines.repair.at_credit_service import CreditServiceSteps
from pipelines.repair.audit import Audit
from pipelines.repair.outcome import StepOutcome, StepState
from pipelines.repair.plan import Plan, Step, read_plan, write_plan
from pipelines.repair.planning import plan_of
from pipelines.running import SparkSettings, books_of, reconciled
from pipelines.screen import say
from pipelines.verdict import exit_with
from service_runtime.secret_files import SecretUnusable, read_secret

PlanFile = Annotated[Path | None, typer.Option("--plan", help="reconcile, and write what would be done into this file")]
ApplyFile = Annotated[Path | None, typer.Option("--apply", help="do what is in this file")]
NameServers = Annotated[
    str | None, typer.Option(envvar="NAMESRV_ADDR", show_envvar=True, help="HOST:PORT;HOST:PORT of name servers")
]
CreditService = Annotated[str, typer.Option(envvar="CREDIT_SERVICE_URL", show_envvar=True, help="the credit service")]
RepairKeyFile = Annotated[
    str,
    typer.Option(envvar="CREDIT_REPAIR_KEY_FILE", show_envvar=True, help="file with the key that the credit service asks for"),
]
AuditFile = Annotated[Path | None, typer.Option("--audit", help="where each attempt is noted; PLAN.audit.jsonl unless given")]


def repair_command(
    plan: PlanFile = None,
    apply: ApplyFile = None,
    order_database_url: OrderDatabase = "sqlite:///data/orders.db",
    credit_database_url: CreditDatabase = "sqlite:///data/credits.db",
    order_database_password_file: OrderPasswordFile = "",
    credit_database_password_file: CreditPasswordFile = "",
    store: Stores = None,
    broker: Brokers = None,
    topic: Topic = "orders",
    consumer_group: ConsumerGroup = "credit_service",
    master: Master = None,
    memory: Memory = None,
    grace_seconds: Grace = GRACE_SECONDS,
    overdue_seconds: Overdue = OVERDUE_SECONDS,
    output: Output = "data/reconciliation",
    spark_log: SparkLog = None,
    namesrv_addr: NameServers = None,
    credit_service_url: CreditService = "http://127.0.0.1:8081",
    repair_key_file: RepairKeyFile = "",
    audit: AuditFile = None,
) -> None:
    """Mend what the reconciliation finds: first --plan, which changes nothing; then read the file; then --apply.

    Exit code 0: nothing is left to do. 1: something is. 2: the job could not tell.
    """
    if (plan is None) == (apply is None):
        raise typer.BadParameter("exactly one of the two must be given", param_hint="--plan, --apply")
    progress = Console(stderr=True)

    def work() -> bool:
        if apply is not None:
            key = _key(repair_key_file)
            path = audit or apply.with_name(f"{apply.name}.audit.jsonl")
            return _apply(read_plan(apply), Audit(path), namesrv_addr, credit_service_url, key)
        assert plan is not None
        books = books_of(
            (order_database_url, order_database_password_file),
            (credit_database_url, credit_database_password_file),
            Route(topic, consumer_group),
            store,
            broker,
        )
        cut_off = CutOff(time.time_ns() // 1_000_000, grace_seconds, overdue_seconds)
        timed = reconciled(books, cut_off, output, SparkSettings(master, memory, spark_log), progress)
        made = plan_of(timed.outcome.rows, books.route, cut_off.as_of_ms)
        write_plan(made, plan)
        _tell_plan(made, plan)
        return not made.steps and not made.for_a_person

    exit_with(work, progress)


def _apply(plan: Plan, audit: Audit, namesrv_addr: str | None, credit_service_url: str, key: str) -> bool:
    try:
        outcomes = asyncio.run(_carried_out(plan, audit, namesrv_addr, credit_service_url, key))
    except AdminError as error:
        raise PlanUnusable(f"the plan was not applied: {error}") from None
    counts = Counter(outcome.state for _, outcome in outcomes)
    say(
        f"{counts[StepState.DONE]} done, {counts[StepState.DONE_BEFORE]} done before, {counts[StepState.FAILED]} failed, "
        f"{len(plan.for_a_person)} for a person. Audit: {audit.path}"
    )
    return not counts[StepState.FAILED] and not plan.for_a_person


async def _carried_out(
    plan: Plan, audit: Audit, namesrv_addr: str | None, credit_service_url: str, key: str
) -> list[tuple[Step, StepOutcome]]:
    credit_service = CreditServiceSteps(credit_service_url, key)
    try:
        if not needs_brokers(plan):
            return await _told(plan, None, credit_service, audit)
        async with opened_session(Target(namesrv_addr=namesrv_addr)) as session:
            return await _told(plan, BrokerSteps(session, plan), credit_service, audit)
    finally:
        credit_service.close()


async def _told(
    plan: Plan, brokers: BrokerSteps | None, credit_service: CreditServiceSteps, audit: Audit
) -> list[tuple[Step, StepOutcome]]:
    outcomes = []
    async for step, outcome in carry_out(plan, brokers, credit_service.carry_out, audit):
        outcomes.append((step, outcome))
        say(f"{outcome.state.value.replace('_', ' ')}: {step.action.value} {step.subject}: {outcome.detail}")
    return outcomes


def _tell_plan(plan: Plan, path: Path) -> None:
    for step in plan.steps:
        say(f"{step.id}  {step.action.value} {step.subject}: {'; '.join(step.evidence)}")
    for one in plan.for_a_person:
        say(f"for a person: {one.subject}: {one.evidence[0]}: {one.advice}")
    say(f"Plan: {len(plan.steps)} steps, {len(plan.for_a_person)} for a person: {path}")


def _key(path: str) -> str:
    if not path:
        return ""
    try:
        return read_secret(path)
    except SecretUnusable as error:
        raise PlanUnusable(f"CREDIT_REPAIR_KEY_FILE: {error}") from None
