"""Compares the table "What each request needs" in docs/access.md with the permissions that the ACL requires."""

import re
from pathlib import Path

from rocketmq_broker.acl.needs import ACCOUNT_CODES, ADMIN_CODES, AUDITOR_CODES, FINDERS
from rocketmq_broker.protocol.codes import AdminRequestCode, RequestCode

PAGE = Path(__file__).resolve().parents[3] / "docs" / "access.md"


def rows() -> dict[int, tuple[str, str]]:
    """Returns the needed permission by request code, and whether an auditor may send the request."""
    _, _, rest = PAGE.read_text().partition("### What each request needs\n")
    table = re.findall(r"^\| ([A-Z][A-Z0-9_, ]+) \| ([^|]+) \| ([^|]+) \| [^|]+ \|$", rest.partition("\n#")[0], re.MULTILINE)
    names = {code.name: int(code) for code in (*RequestCode, *AdminRequestCode)}
    found = [(names[name], (needs, auditor)) for codes, needs, auditor in table for name in codes.split(", ")]
    assert len(dict(found)) == len(found), "a request stands in two rows"
    return dict(found)


def test_the_page_names_each_request_that_a_broker_answers() -> None:
    assert rows().keys() == {int(code) for code in {*FINDERS, *ADMIN_CODES, *ACCOUNT_CODES}}


def test_the_page_says_of_each_request_who_may_send_it() -> None:
    for code, (needs, auditor) in rows().items():
        kinds = {"an admin": ADMIN_CODES, "an account": ACCOUNT_CODES}
        kind = next((codes for words, codes in kinds.items() if needs.startswith(words)), FINDERS)
        assert code in kind, (code, needs)
        assert auditor.startswith("yes") is (code in AUDITOR_CODES), (code, auditor)
