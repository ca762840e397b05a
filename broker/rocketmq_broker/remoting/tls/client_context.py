"""TLS contexts of clients."""

import ssl

from rocketmq_broker.remoting.tls.contexts import load_certificate, load_trusted, new_context
from rocketmq_broker.remoting.tls.settings import ClientTls


def client_context(settings: ClientTls) -> ssl.SSLContext:
    """Returns the TLS context of a client's connections. Raises TlsUnusable."""
    context = new_context(ssl.PROTOCOL_TLS_CLIENT)
    if not settings.auth_server:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif settings.trust_cert_path is not None:
        load_trusted(context, settings.trust_cert_path)
    else:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    if not settings.check_hostname:
        context.check_hostname = False
    if settings.cert_path is not None and settings.key_path is not None:
        load_certificate(context, settings.cert_path, settings.key_path, settings.key_password)
    return context
