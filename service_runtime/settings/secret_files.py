"""Passwords from files, as Docker and Kubernetes provide secrets, inserted into the URLs that lack them.

Everybody who may inspect the container sees an environment variable; and a password in a URL must be escaped, which people
forget. So a variable NAME_URL holds no password, and NAME_PASSWORD_FILE names its file.
"""

from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

_LONGEST = 4096


class SecretUnusable(ValueError):
    """The password cannot be read, or the URL has no place for it. The text contains neither."""

    def __init__(self, text: str) -> None:
        # A path may hold bytes that are no UTF-8; pydantic accepts no error whose text cannot be encoded.
        super().__init__(text.encode(errors="backslashreplace").decode())


def url_with_password(url: str, password_file: str | Path | None) -> str:
    """Returns the URL with the file's password, escaped; without a file the unchanged URL. Raises SecretUnusable."""
    if not password_file:
        return url
    password = read_secret(password_file)
    try:
        parts = urlsplit(url)
    except ValueError:
        raise SecretUnusable("the URL cannot be read") from None
    user, _, host = parts.netloc.rpartition("@")
    if not host:
        raise SecretUnusable("the URL names no host, so there is nobody to tell a password")
    if ":" in user:
        raise SecretUnusable("the URL holds a password already: take it out there, or do without the file")
    return urlunsplit(parts._replace(netloc=f"{user}:{quote(password, safe='')}@{host}"))


def read_secret(path: str | Path) -> str:
    """Returns the file's content without its last line end. Raises SecretUnusable."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(_LONGEST + 1)
        secret = content.decode().removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise SecretUnusable(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SecretUnusable(f"{path} is not text in UTF-8") from None
    if not secret:
        raise SecretUnusable(f"{path} is empty")
    if len(content) > _LONGEST or "\n" in secret:
        raise SecretUnusable(f"{path} is no password: one line of at most {_LONGEST} bytes is expected")
    return secret
