import pytest

from credit_service.settings import masked_redis


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://:secret@db:6379/0", "redis://db:6379/0"),
        ("rediss://ann:secret@db/1?ssl_cert_reqs=none", "rediss://db/1"),
        ("redis://db", "redis://db"),
        ("redis://[::1]:x/0", "<an invalid URL>"),
    ],
)
def test_a_redis_url_is_shown_without_user_password_and_parameters(url: str, shown: str) -> None:
    assert masked_redis(url) == shown
