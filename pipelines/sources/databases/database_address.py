"""The address of a database. The password is separate, so that the address can be printed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self
from urllib.parse import quote, quote_plus


class Driver(StrEnum):
    """The available ADBC drivers."""

    SQLITE = "sqlite"
    POSTGRESQL = "postgresql"


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """A database's address for ADBC. `repr`, `public_uri` and `name` do not contain the password."""

    driver: Driver
    public_uri: str
    """The driver's URI without a password."""
    name: str
    """The name to show to people, which is a path, or host and database."""
    password: str = field(default="", repr=False)

    @property
    def uri(self) -> str:
        """The URI with the password. It must be passed only to the driver."""
        if not self.password:
            return self.public_uri
        separator = "&" if "?" in self.public_uri else "?"
        return f"{self.public_uri}{separator}password={quote(self.password, safe='')}"

    def without_password(self, text: str) -> str:
        """Returns the text in one line, with the password masked in all its encodings."""
        line = " ".join(text.split())
        for spelling in {self.password, quote(self.password, safe=""), quote_plus(self.password)} - {""}:
            line = line.replace(spelling, "***")
        return line

    def to_options(self) -> dict[str, str]:
        """Returns the address as options of a Spark data source. Spark redacts the option `password` in its output."""
        return {"driver": self.driver.value, "uri": self.public_uri, "name": self.name, "password": self.password}

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """Returns the address from the options of `to_options`."""
        return cls(Driver(options["driver"]), options["uri"], options["name"], options.get("password", ""))
