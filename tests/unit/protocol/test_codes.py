"""No request code is used twice, and this project's own codes do not collide with RocketMQ's."""

from enum import IntEnum

import pytest

from rocketmq_broker.protocol.codes import AdminRequestCode, LanguageCode, RequestCode, ResponseCode, SerializeType

HIGHEST_LOW_CODE_OF_ROCKETMQ_5 = 3_010
"""Its next one is 200,050."""


@pytest.mark.parametrize("codes", [AdminRequestCode, LanguageCode, RequestCode, ResponseCode, SerializeType])
def test_no_two_names_have_the_same_code(codes: type[IntEnum]) -> None:
    assert len(codes.__members__) == len(list(codes))


def test_requests_of_our_own_have_codes_that_rocketmq_does_not_use_and_binary_headers_can_hold() -> None:
    assert all(HIGHEST_LOW_CODE_OF_ROCKETMQ_5 < code < 2**15 for code in AdminRequestCode)
    assert not {int(code) for code in AdminRequestCode} & {int(code) for code in RequestCode}


def test_languages_are_numbered_as_javas_enumeration_is() -> None:
    assert [language.value for language in LanguageCode] == list(range(len(LanguageCode)))
    assert (LanguageCode.JAVA, LanguageCode.PYTHON, LanguageCode.GO) == (0, 3, 9)
