"""Signs requests with HmacSHA1 and the account's secret key (RocketMQ's AclUtils.combineRequestContent and AclSigner).

The signature covers the values of all extension fields except the signature itself, sorted by field name, followed by the body.
"""

import base64
import hmac
from collections.abc import Mapping
from typing import Final

ACCESS_KEY: Final = "AccessKey"
SECURITY_TOKEN: Final = "SecurityToken"
SIGNATURE: Final = "Signature"
UNIQUE_KEY_QUERY: Final = "_UNIQUE_KEY_QUERY"
"""A field that Apache's client 4.9.7 signs but Apache's broker 4.9.7 does not expect to be signed. See `is_signed`."""

_DIGEST: Final = "sha1"
_COPIED_UP_TO: Final = 16 * 1024
"""The size in bytes up to which hashing a joined copy of fields and body is faster than hashing them in two calls."""


def signature(fields: Mapping[str, str], body: bytes, secret_key: str, *, unsigned: frozenset[str] = frozenset()) -> str:
    """Returns the Base64 signature of the body and of all fields except those in `unsigned`."""
    skipped = unsigned | {SIGNATURE}
    content = "".join(fields[name] for name in sorted(fields) if name not in skipped).encode()
    if len(body) <= _COPIED_UP_TO:
        return base64.b64encode(hmac.digest(secret_key.encode(), content + body, _DIGEST)).decode()
    digest = hmac.new(secret_key.encode(), content, _DIGEST)
    digest.update(body)
    return base64.b64encode(digest.digest()).decode()


def is_signed(fields: Mapping[str, str], body: bytes, secret_key: str) -> bool:
    """Returns whether the fields contain the signature made with the secret key. Compares in constant time.

    The field `_UNIQUE_KEY_QUERY` may be signed or unsigned. Apache's client 4.9.7 signs this field, although Apache's
    broker rejects a request in which it is signed.
    """
    given = fields.get(SIGNATURE, "").encode()
    if hmac.compare_digest(signature(fields, body, secret_key).encode(), given):
        return True
    if UNIQUE_KEY_QUERY not in fields:
        return False
    without = signature(fields, body, secret_key, unsigned=frozenset({UNIQUE_KEY_QUERY}))
    return hmac.compare_digest(without.encode(), given)
