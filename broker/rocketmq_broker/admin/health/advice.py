"""Gives advice on common mistakes with TLS and accounts, for a name server or broker that rejects this tool."""

from collections.abc import Mapping
from typing import Final

from rocketmq_broker.admin.health.finding import HealthFinding, wrong
from rocketmq_broker.remoting.errors import CertificateRefused, ConnectionClosed, HandshakeFailed

_WANTS_TLS: Final = (
    "A program listens there but closes the connection. If it accepts only TLS (tls.server.mode=enforcing), set "
    "ROCKETMQ_TLS_ENABLE=true for this tool, and ROCKETMQ_TLS_TRUST_CERT_PATH to the certificate that signed the broker's."
)
_CERTIFICATE: Final = (
    "Set ROCKETMQ_TLS_TRUST_CERT_PATH to the certificate that signed this one. If the certificate is for other names, issue one "
    "for the address that clients use, or set ROCKETMQ_TLS_CHECK_HOSTNAME=false."
)
_NO_TLS: Final = (
    "If it does not use TLS (tls.server.mode=disabled), set ROCKETMQ_TLS_ENABLE=false for this tool. If it requires client "
    "certificates (tls.server.need.client.auth), set ROCKETMQ_TLS_CERT_PATH and ROCKETMQ_TLS_KEY_PATH."
)
_DENIALS: Final = (
    (
        "No accessKey is configured",
        "It requires an account (aclEnable=true): set ROCKETMQ_ACCESS_KEY and ROCKETMQ_SECRET_KEY to those of an admin account.",
    ),
    (
        "No acl config for",
        "Its plain_acl.yml has no account with this access key: correct ROCKETMQ_ACCESS_KEY, or add the account there.",
    ),
    (
        "Check signature failed",
        "The secret key does not match the one in its plain_acl.yml for this access key: correct ROCKETMQ_SECRET_KEY.",
    ),
    (
        "Need admin permission",
        "This account is not an admin account: use another one, or set `admin: true` in its plain_acl.yml.",
    ),
)
"""Maps refusals of Apache's brokers and of this broker to advice."""
_ADMINS_ACCOUNT: Final = "Use an admin account: set ROCKETMQ_ACCESS_KEY and ROCKETMQ_SECRET_KEY."
_WITHOUT_EFFECT: Final = (
    "ROCKETMQ_TLS_TRUST_CERT_PATH",
    "ROCKETMQ_TLS_CERT_PATH",
    "ROCKETMQ_TLS_KEY_PATH",
    "ROCKETMQ_TLS_AUTH_SERVER",
    "ROCKETMQ_TLS_CHECK_HOSTNAME",
)


def about_connection(error: BaseException | None) -> str | None:
    """Returns advice for a connection that failed because of TLS; None if TLS was not the reason."""
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
    """Returns advice on `text`, the error of a broker that refuses to report its statistics."""
    return next((advice for words, advice in _DENIALS if words in text), _ADMINS_ACCOUNT)


def unused_tls(environment: Mapping[str, str]) -> list[HealthFinding]:
    """Returns a finding if TLS settings have no effect because ROCKETMQ_TLS_ENABLE is not set."""
    names = [name for name in _WITHOUT_EFFECT if environment.get(name)]
    if environment.get("ROCKETMQ_TLS_ENABLE") or not names:
        return []
    verb = "is" if len(names) == 1 else "are"
    what = f"{', '.join(names)} {verb} set without ROCKETMQ_TLS_ENABLE=true: this tool does not use TLS."
    return [wrong("this tool", what, "Set ROCKETMQ_TLS_ENABLE=true, or unset the others.")]
