"""The setting with the name servers, by which a service finds its broker."""

from typing import Annotated

from pydantic import AfterValidator, Field

from rocketmq_broker.client import IllegalConfiguration, name_server_addresses
from service_runtime.settings.common import NamedSettings


def _name_servers(text: str) -> str:
    try:
        name_server_addresses(text)
    except IllegalConfiguration as error:
        raise ValueError(str(error)) from None
    return text


class NameServerSettings(NamedSettings):
    """The name servers of a service that sends or consumes."""

    namesrv_addr: Annotated[str, AfterValidator(_name_servers)] = Field(
        "127.0.0.1:9876", min_length=1, validation_alias="NAMESRV_ADDR", description="name servers, host:port;host:port"
    )
