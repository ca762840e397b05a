"""Tests which releases the doctor reports as too old or too far apart."""

import pytest

from rocketmq_broker.admin.health.versions import ProgramVersion, clients_found, far_apart, too_old, version_of, version_text
from rocketmq_broker.protocol.codes import CURRENT_VERSION, CURRENT_VERSION_NAME, VERSION_4_9_4


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (212, "4.0.0"),
        (213, "4.0.0"),
        (214, "4.0.1"),
        (279, "4.3.3"),
        (293, "4.4.0"),
        (401, "4.9.4"),
        (407, "4.9.7"),
        (413, "5.0.0"),
        (433, "5.1.0"),
        (453, "5.2.0"),
        (479, "5.3.3"),
    ],
)  # fmt: skip
def test_the_number_in_a_frame_says_the_release(number: int, expected: str) -> None:
    assert version_text(number) == expected


def test_the_numbers_of_this_program_say_what_their_names_say() -> None:
    assert f"V{version_text(CURRENT_VERSION)}".replace(".", "_") == CURRENT_VERSION_NAME
    assert version_text(VERSION_4_9_4) == "4.9.4"


@pytest.mark.parametrize("number", [-1, 0, 211])
def test_a_number_from_before_4_0_0_is_told_as_it_is(number: int) -> None:
    assert version_of(number) is None
    assert version_text(number) == f"a release before 4.0.0 (version number {number})"


@pytest.mark.parametrize(("number", "is_wrong"), [(0, True), (213, True), (271, True), (273, False), (407, False), (479, False)])
def test_a_release_before_check_backs_is_too_old(number: int, is_wrong: bool) -> None:
    found = too_old("broker", number)
    assert [finding.is_wrong for finding in found] == [True] * is_wrong
    assert all("need 4.3.0" in finding.what for finding in found)


@pytest.mark.parametrize(
    ("broker", "name_server", "is_wrong"),
    [(407, 407, False), (479, 479, False), (407, 479, False), (479, 407, True), (9, 407, False)],
)
def test_a_broker_may_not_be_of_a_newer_line_than_its_name_server(broker: int, name_server: int, is_wrong: bool) -> None:
    found = far_apart(ProgramVersion("broker a", broker), [ProgramVersion("name server b", name_server)])
    assert [finding.what for finding in found] == ["It is 5.3.3, and name server b is 4.9.7: too far apart."] * is_wrong
    assert [finding.what_to_do for finding in found] == [
        "Upgrade name servers before brokers: upgrade this one to 5.x."
    ] * is_wrong


def test_only_the_older_name_server_is_named() -> None:
    servers = [ProgramVersion("name server b", 407), ProgramVersion("name server c", 479)]
    assert [finding.what for finding in far_apart(ProgramVersion("broker a", 413), servers)] == [
        "It is 5.0.0, and name server b is 4.9.7: too far apart."
    ]


def test_clients_are_counted_by_their_versions() -> None:
    clients = [
        ProgramVersion("producer group p", 407),
        ProgramVersion("consumer group c", 407),
        ProgramVersion("consumer group c", 479),
    ]
    (found,) = clients_found("broker", clients)
    assert (found.is_wrong, found.what) == (False, "Its clients are 2 of 4.9.7, 1 of 5.3.3.")


def test_clients_that_answer_no_check_back_are_named_by_their_groups() -> None:
    clients = [
        ProgramVersion("producer group p", 213),
        ProgramVersion("producer group p", 215),
        ProgramVersion("consumer group c", 407),
    ]
    (found,) = clients_found("broker", clients)
    assert found.is_wrong
    assert found.what.endswith("those of producer group p are older than 4.3.0 and do not answer check-backs.")


def test_a_broker_without_clients_is_fine() -> None:
    (found,) = clients_found("broker", [])
    assert (found.is_wrong, found.what) == (False, "No client is connected.")
