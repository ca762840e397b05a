"""The descriptor pool of the API's messages, and the classes of each .proto file."""

from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message_factory import GetMessageClass


def classes_of(file_name: str) -> dict[str, Any]:
    """Returns the classes, enums and enum values of a .proto file, keyed by the names that protoc's Python code uses."""
    described = _pool().FindFileByName(file_name)
    found: dict[str, Any] = {name: GetMessageClass(message) for name, message in described.message_types_by_name.items()}
    for name, enum in described.enum_types_by_name.items():
        found[name] = EnumTypeWrapper(enum)
        found |= {value.name: value.number for value in enum.values}
    return found


@cache
def _pool() -> DescriptorPool:
    pool = DescriptorPool()
    for described in FileDescriptorSet.FromString((Path(__file__).parent / "messages.binpb").read_bytes()).file:
        pool.Add(described)
    return pool
