"""Advice about a name server or broker that refuses this tool: the usual mistakes with TLS and with accounts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rocketmq_broker.admin.health.finding import HealthFinding, wrong
from rocketmq_broker.remoting.errors import CertificateRefused, ConnectionClosed, HandshakeFailed

_WANTS_TLS: Final = (
    "Somebody listens there and ends the connection. If it takes TLS only (tls.server.mode=enforcing), set "
    "ROCKETMQ_TLS_ENABLE=true for this tool, and ROCKETMQ_TLS_TRUST_CERT_PATH to the certificate that signed the broker's."
)
_CERTIFICATE: Final = (
    "Set ROCKETMQ_TLS_TRUST_CERT_PATH to the certificate that signed this one; if it is made for other names, have one made "
    "for the address by which clients reach it, or set ROCKETMQ_TLS_CHECK_HOSTNAME=false."
)
_NO_TLS: Final = (
    "If it speaks no TLS (tls.server.mode=disabled), set ROCKETMQ_TLS_ENABLE=false for this tool. If it asks clients for a "
    "certificate (tls.server.need.client.auth), set ROCKETMQ_TLS_CERT_PATH and ROCKETMQ_TLS_KEY_PATH."
)
_DENIALS: Final = (
    (
        "No accessKey is configured",
        "It wants to know who asks (aclEnable=true): set ROCKETMQ_ACCESS_KEY and ROCKETMQ_SECRET_KEY to an admin's account.",
    ),
    (
        "No acl config for",
        "Its plain_acl.yml has no account with this access key: correct ROCKETMQ_ACCESS_KEY, or add the account there.",
    ),
    (
        "Check signature failed",
        "The secret key is not the one that its plain_acl.yml has for this access key: correct ROCKETMQ_SECRET_KEY.",
    ),
    (
        "Need admin permission",
        "This account is no admin's: set ROCKETMQ_ACCESS_KEY to one that is, or `admin: true` in its plain_acl.yml.",
    ),
)
"""The refusals of Apache's brokers and of this one, with the advice for each."""
_ADMINS_ACCOUNT: Final = "Come in with an admin's account: ROCKETMQ_ACCESS_KEY and ROCKETMQ_SECRET_KEY."
_WITHOUT_EFFECT: Final = (
    "ROCKETMQ_TLS_TRUST_CERT_PATH",
    "ROCKETMQ_TLS_CERT_PATH",
    "ROCKETMQ_TLS_KEY_PATH",
    "ROCKETMQ_TLS_AUTH_SERVER",
    "ROCKETMQ_TLS_CHECK_HOSTNAME",
)


def about_connection(error: BaseException | None) -> str | None:
    """Advises on a connection that failed because of TLS; None if TLS was not the reason."""
    while error is not None:
        if isinstance(error, CertificateRefused):
            return _CERTIFICATE
        if isinstance(error, HandshakeFailed):
            return _NO_TLS
        if isinstance(error, ConnectionClosed):
            return _WANTS_TLS
        error = error.__cause__
    return None


def about_refusal(text: str) -> str:
    """Advises on a broker's refusal to give its figures."""
    return next((advice for words, advice in _DENIALS if words in text), _ADMINS_ACCOUNT)


def unused_tls(environment: Mapping[str, str]) -> list[HealthFinding]:
    """Finds TLS settings without effect because TLS is off. Finds none if ROCKETMQ_TLS_ENABLE is set."""
    names = [name for name in _WITHOUT_EFFECT if environment.get(name)]
    if environment.get("ROCKETMQ_TLS_ENABLE") or not names:
        return []
    what = (
        f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} set without ROCKETMQ_TLS_ENABLE=true: this tool speaks no TLS."
    )
    return [wrong("this tool", what, "Set ROCKETMQ_TLS_ENABLE=true, or take the others away.")]
