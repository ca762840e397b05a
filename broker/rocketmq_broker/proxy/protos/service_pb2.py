"""The classes of service.proto, which service_pb2.pyi declares."""

from rocketmq_broker.proxy.protos.pool import classes_of

globals().update(classes_of("apache/rocketmq/v2/service.proto"))
