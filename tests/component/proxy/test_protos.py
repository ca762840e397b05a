"""Tests that the generated code is what protoc generates from the .proto files."""

import pytest

from deploy.scripts.compile_protos import PROTOS, compiled
from rocketmq_broker.proxy.protos import definition_pb2 as api


@pytest.mark.parametrize("name", ["messages.binpb", "definition_pb2.pyi", "service_pb2.pyi"])
def test_what_is_kept_is_current(name: str) -> None:
    assert (PROTOS / name).read_bytes() == compiled()[name], "make protos"


def test_apache_s_client_has_the_same_names_in_the_same_process() -> None:
    from rocketmq.grpc_protocol import Code, Resource

    assert Resource.DESCRIPTOR.full_name == api.Resource.DESCRIPTOR.full_name
    assert Resource is not api.Resource
    assert Code.OK == api.OK
