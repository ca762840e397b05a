"""The key of a request, as `Authorization: Bearer KEY`."""

import hmac


def brings_key(authorization: str, key: str) -> bool:
    """Returns whether this header holds the key. The comparison's time says nothing about the key.

    `authorization` is WSGI's: each byte of the header a character. The key is text, which clients send in UTF-8.
    """
    return hmac.compare_digest(authorization.encode("latin-1", "replace"), f"Bearer {key}".encode())
