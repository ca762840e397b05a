"""A key that a request must bring, as `Authorization: Bearer KEY`."""

import hmac


def brings_key(authorization: str, key: str) -> bool:
    """Whether a request with this header brings the key; how long the answer takes says nothing about the key.

    `authorization` is as WSGI gives it: each byte of the header a character. The key is text, which clients send in UTF-8.
    """
    return hmac.compare_digest(authorization.encode("latin-1", "replace"), f"Bearer {key}".encode())
