"""Passwords from files for settings: kept in a value that does not show itself, and named by the variable in every error."""

from pydantic import SecretStr

from service_runtime.settings.secret_files import SecretUnusable, read_secret, url_with_password


def secret_url(url: SecretStr, password_file: str, name: str) -> SecretStr:
    """`url_with_password` of the variable `name`, which begins the sentence of a SecretUnusable."""
    try:
        return SecretStr(url_with_password(url.get_secret_value(), password_file))
    except SecretUnusable as error:
        raise SecretUnusable(f"{name}: {error}") from None


def secret_of(path: str, name: str) -> SecretStr:
    """What the file holds, empty without a path. The variable `name` begins the sentence of a SecretUnusable."""
    try:
        return SecretStr(read_secret(path) if path else "")
    except SecretUnusable as error:
        raise SecretUnusable(f"{name}: {error}") from None
