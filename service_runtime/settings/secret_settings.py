"""Passwords from files for settings: kept in a value that hides itself. Each error names the variable."""

from pydantic import SecretStr

from service_runtime.settings.secret_files import SecretUnusable, read_secret, url_with_password


def secret_url(url: SecretStr, password_file: str, name: str) -> SecretStr:
    """Calls `url_with_password` for the variable `name`, which begins the text of a SecretUnusable."""
    try:
        return SecretStr(url_with_password(url.get_secret_value(), password_file))
    except SecretUnusable as error:
        raise SecretUnusable(f"{name}: {error}") from None


def secret_of(path: str, name: str) -> SecretStr:
    """Returns the file's content, empty without a path. The variable `name` begins the text of a SecretUnusable."""
    try:
        return SecretStr(read_secret(path) if path else "")
    except SecretUnusable as error:
        raise SecretUnusable(f"{name}: {error}") from None
