"""Host names as a setting has them: with commas between."""

from typing import Annotated

from pydantic import AfterValidator

from rocketmq_broker.known_hosts import host_of, is_address, split_names


def _host_names(text: str) -> str:
    for name in split_names(text):
        if not is_address(name) and host_of(name) != name:
            raise ValueError(
                f"{name!r} is no host name: names without http:// and without a port are expected, with commas between"
            )
    return text


HostNames = Annotated[str, AfterValidator(_host_names)]
"""Host names with commas between them."""
