"""A key that a request must bring, as `Authorization: Bearer KEY`."""

import hmac


def brings_key(authorization: str, key: str) -> bool:
    """Whether a request with this header brings the key; how long the answer takes says nothing about the key."""
    return hmac.compare_digest(authorization.encode(), f"Bearer {key}".encode())
