import pytest

from order_service.service_layer.failpoints import parse_failpoints


@pytest.mark.parametrize("text", ["", "  "])
def test_no_failpoint_is_on_by_default(text: str) -> None:
    failpoints = parse_failpoints(text)
    assert failpoints.exit_after_local_commit_every is None
    failpoints.after_local_commit()


def test_a_failpoint_says_how_often() -> None:
    assert parse_failpoints("exit-after-local-commit:every=25").exit_after_local_commit_every == 25


@pytest.mark.parametrize(
    "text",
    ["exit", "exit-after-local-commit", "exit-after-local-commit:every=0", "exit-after-local-commit:every=x", "other:every=1"],
)
def test_a_failpoint_that_does_not_exist_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="exit-after-local-commit:every=N"):
        parse_failpoints(text)
