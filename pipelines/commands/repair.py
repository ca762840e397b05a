"""The command `repair`: `--plan FILE` writes a plan, `--apply FILE` applies it."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pipelines.commands.arguments import BooksOptions, Output, PatienceOptions, RepairOptions, SparkOptions
from pipelines.commands.option_groups import with_groups
from pipelines.commands.running import now_ms, spark_judge
from pipelines.commands.verdict import exit_with
from pipelines.errors import PlanUnusable
from pipelines.repair.audit import Audit
from pipelines.repair.plan import RepairPlan, read_plan, write_plan
from pipelines.repair.planning import plan_of
from pipelines.reporting.report import say, unchecked_repairs
from rocketmq_broker.message.text.printable import visible_name
from service_runtime.settings.secret_files import SecretUnusable, read_secret


@with_groups(behind={"spark_log": "output"})
def repair_command(
    *,
    plan: Annotated[Path | None, typer.Option(help="reconcile, and write the repair plan to this file")] = None,
    apply: Annotated[Path | None, typer.Option(help="apply the repair plan in this file")] = None,
    books: BooksOptions,
    spark: SparkOptions,
    patience: PatienceOptions,
    output: Output = "data/reconciliation",
    asking: RepairOptions,
) -> None:
    """Repair what the reconciliation finds. Run --plan, which changes nothing, read the file, then run --apply.

    Exit code 0: nothing is left to do. 1: steps or decisions remain. 2: the run failed.
    """
    if (plan is None) == (apply is None):
        raise typer.BadParameter("give exactly one of --plan and --apply", param_hint="--plan, --apply")
    progress = Console(stderr=True)

    def work() -> bool:
        if apply is not None:
            # Imported here because importing both clients takes a third of a second, which all other commands save.
            from pipelines.repair.carrying_out import applied

            key = _key(asking.repair_key_file)
            path = asking.audit or apply.with_name(f"{apply.name}.audit.jsonl")
            return applied(read_plan(apply), Audit(path), asking.namesrv_addr, asking.credit_service_url, key)
        assert plan is not None
        compared, cut_off = books.books(), patience.cut_off(now_ms())
        with spark_judge(compared, output, spark, progress) as judge:
            timed = judge(cut_off)
        made = plan_of(timed.outcome.rows, compared.route, cut_off.as_of_ms)
        write_plan(made, plan)
        _print_plan(made, plan)
        if believed := unchecked_repairs(timed.outcome.totals, is_audited=False):
            say(believed)
        return not made.steps and not made.for_a_person

    exit_with(work, progress)


def _print_plan(plan: RepairPlan, path: Path) -> None:
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
