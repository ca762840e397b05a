"""The command `repair`: `--plan FILE` writes what it would do, `--apply FILE` does it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pipelines.commands.arguments import (
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
from pipelines.commands.running import SparkSettings, books_of, reconciled
from pipelines.commands.verdict import exit_with
from pipelines.errors import PlanUnusable
from pipelines.judging.cut_off import GRACE_SECONDS, OVERDUE_SECONDS, CutOff
from pipelines.judging.log_events import Route
from pipelines.repair.audit import Audit
from pipelines.repair.plan import Plan, read_plan, write_plan
from pipelines.repair.planning import plan_of
from pipelines.telling.screen import say
from rocketmq_broker.message.printable import visible_name
from service_runtime.settings.secret_files import SecretUnusable, read_secret

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
            # Here, because both clients take a third of a second that every other command need not wait for.
            from pipelines.repair.carrying_out import applied

            key = _key(repair_key_file)
            path = audit or apply.with_name(f"{apply.name}.audit.jsonl")
            return applied(read_plan(apply), Audit(path), namesrv_addr, credit_service_url, key)
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


def _tell_plan(plan: Plan, path: Path) -> None:
    for step in plan.steps:
        say(f"{step.id}  {step.action.value} {visible_name(step.subject)}: {'; '.join(step.evidence)}")
    for one in plan.for_a_person:
        say(f"for a person: {visible_name(one.subject)}: {one.evidence[0]}: {one.advice}")
    say(f"Plan: {len(plan.steps)} steps, {len(plan.for_a_person)} for a person: {path}")


def _key(path: str) -> str:
    if not path:
        return ""
    try:
        return read_secret(path)
    except SecretUnusable as error:
        raise PlanUnusable(f"CREDIT_REPAIR_KEY_FILE: {error}") from None
