"""A rule that refuses every row, and one that refuses some, through every process; then the mend, and the one command."""

from pathlib import Path

import pytest

from demo.processes import Processes
from tests.e2e.refusing_database import refused_shop

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def test_no_order_is_lost_by_a_wrong_rule_and_one_command_brings_back_what_was_parked(
    processes: Processes, tmp_path: Path
) -> None:
    with refused_shop(processes, tmp_path, "sqlite") as shop:
        cost = shop.play("credit", shop.rules("credit")["wrong CHECK"], orders=6)
        assert (cost.passed, cost.dead_letters, cost.health) == (0, 0, (503, "degraded", "refusal"))
        assert cost.passed_after_mend == 6
        cost = shop.play("credit", shop.rules("credit")["some: raising trigger"], orders=12)
        assert (cost.orders - cost.passed, cost.dead_letters) == (3, 3)
        assert cost.health[:2] == (200, "attention")
        assert (cost.would_come_back, cost.lost) == (3, 0)
        assert shop.points_are_their_sum()
        assert shop.health("credit")["status"] == "ok"
