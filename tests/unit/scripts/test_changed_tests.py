import pytest

from deploy.scripts.changed_tests import ALWAYS, unit_tests_for

BASE = [str(path) for path in ALWAYS]


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("broker/rocketmq_broker/store/log/segments.py", ["tests/unit/store"]),
        ("packages/commitlog/rocketmq_commitlog/commit_log.py", ["packages/commitlog/tests"]),
        ("credit_service/domain/balance.py", ["tests/unit/credit_service"]),
        ("tests/unit/acl/test_plain_acl.py", ["tests/unit/acl/test_plain_acl.py"]),
        ("tests/unit/server/conftest.py", ["tests/unit/server"]),
        ("tests/component/test_tour.py", []),
        ("broker/rocketmq_broker/stop_signals.py", []),
        ("tests/unit/acl/test_that_was_deleted.py", []),
        ("Makefile", []),
    ],
)
def test_a_change_has_the_tests_of_its_package(changed: str, tests: list[str]) -> None:
    assert unit_tests_for([changed]) == sorted([*BASE, *tests])


def test_a_file_is_left_out_beside_its_folder() -> None:
    changed = ["tests/unit/acl/test_plain_acl.py", "broker/rocketmq_broker/acl/needs.py"]
    assert unit_tests_for(changed) == sorted([*BASE, "tests/unit/acl"])


def test_a_page_has_the_tests_of_the_pages() -> None:
    tests = unit_tests_for(["docs/operations.md"])
    assert "tests/unit/test_documentation.py" in tests
    assert [path for path in tests if not path.endswith(".py")] == []
