"""Inserts passwords into URLs. The passwords are read from files, as provided by Docker and Kubernetes.

Anyone who can inspect a container can read its environment variables. A password in a URL must also be escaped, which is easily
forgotten. Therefore the variable NAME_URL contains no password, and NAME_PASSWORD_FILE is the path of the file with the password.
"""

from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

_MAX_BYTES = 4096


class SecretUnusable(ValueError):
    """The password cannot be read or inserted into the URL. The error's text contains neither the password nor the URL."""

    def __init__(self, text: str) -> None:
        # A path may contain bytes that are not UTF-8, and pydantic requires error texts that can be encoded.
        super().__init__(text.encode(errors="backslashreplace").decode())


def url_with_password(url: str, password_file: str | Path | None) -> str:
    """Returns the URL with the escaped password from the file, or the URL unchanged without a file. Raises SecretUnusable."""
    if not password_file:
        return url
    password = read_secret(password_file)
    try:
        parts = urlsplit(url)
    except ValueError:
        raise SecretUnusable("invalid URL") from None
    user, _, host = parts.netloc.rpartition("@")
    if not host:
        raise SecretUnusable("the URL has no host, so it cannot have a password")
    if ":" in user:
        raise SecretUnusable("the URL already contains a password; remove it from the URL, or do not set the password file")
    return urlunsplit(parts._replace(netloc=f"{user}:{quote(password, safe='')}@{host}"))


def read_secret(path: str | Path) -> str:
    """Returns the file's content without the final newline. Raises SecretUnusable."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
        secret = content.decode().removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise SecretUnusable(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SecretUnusable(f"{path} is not UTF-8 text") from None
    if not secret:
        raise SecretUnusable(f"{path} is empty")
    if len(content) > _MAX_BYTES or "\n" in secret:
        raise SecretUnusable(f"{path} must contain one line of at most {_MAX_BYTES} bytes")
    return secret
