"""Reads passwords from files for settings, as pydantic secrets. Each error begins with the variable's name."""

from pydantic import SecretStr

from service_runtime.settings.secret_files import SecretUnusable, read_secret, url_with_password


def secret_url(url: SecretStr, password_file: str, name: str) -> SecretStr:
    """Calls `url_with_password`. Raises SecretUnusable with a text that begins with the variable `name`."""
    try:
        return SecretStr(url_with_password(url.get_secret_value(), password_file))
    except SecretUnusable as error:
        raise SecretUnusable(f"{name}: {error}") from None


def secret_of(path: str, name: str) -> SecretStr:
    """Returns the file's content, or an empty secret without a path. Raises SecretUnusable; its text begins with `name`."""
    try:
        return SecretStr(read_secret(path) if path else "")
    except SecretUnusable as error:
        raise SecretUnusable(f"{name}: {error}") from None
