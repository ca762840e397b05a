"""The signature of a request: HmacSHA1 with the account's secret key (RocketMQ's AclUtils.combineRequestContent and AclSigner).

It covers the values of all extension fields but the signature, in the order of the fields' names, and then the body.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping
from typing import Final

ACCESS_KEY: Final = "AccessKey"
SECURITY_TOKEN: Final = "SecurityToken"
SIGNATURE: Final = "Signature"
UNIQUE_KEY_QUERY: Final = "_UNIQUE_KEY_QUERY"
"""A field that Apache's client 4.9.7 signs and Apache's broker 4.9.7 does not: see `is_signed`."""

_DIGEST: Final = "sha1"
_COPIED_UP_TO: Final = 16 * 1024
"""Bytes of body up to which one call on a copy is faster than two calls."""


def signature(fields: Mapping[str, str], body: bytes, secret_key: str, *, unsigned: frozenset[str] = frozenset()) -> str:
    """Returns the signature in Base64 over all fields except those in `unsigned`."""
    passed_over = unsigned | {SIGNATURE}
    content = "".join(fields[name] for name in sorted(fields) if name not in passed_over).encode()
    if len(body) <= _COPIED_UP_TO:
        return base64.b64encode(hmac.digest(secret_key.encode(), content + body, _DIGEST)).decode()
    digest = hmac.new(secret_key.encode(), content, _DIGEST)
    digest.update(body)
    return base64.b64encode(digest.digest()).decode()


def is_signed(fields: Mapping[str, str], body: bytes, secret_key: str) -> bool:
    """Returns whether the fields hold the signature made with the secret key. Compares in constant time.

    `_UNIQUE_KEY_QUERY` may be signed or not: Apache's clients 4.9.7 sign it, for which Apache's broker refuses them.
    """
    given = fields.get(SIGNATURE, "").encode()
    if hmac.compare_digest(signature(fields, body, secret_key).encode(), given):
        return True
    if UNIQUE_KEY_QUERY not in fields:
        return False
    without = signature(fields, body, secret_key, unsigned=frozenset({UNIQUE_KEY_QUERY}))
    return hmac.compare_digest(without.encode(), given)
