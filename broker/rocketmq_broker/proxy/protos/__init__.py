"""The messages of RocketMQ 5's API: the .proto files of apache/rocketmq-apis, and protoc's output (`make protos`).

The output is a descriptor set and stubs. The Python code that protoc generates is not used, for two reasons. It
requires a protobuf library at least as new as protoc. It also registers the messages in the default pool, where the
messages of Apache's Python client have the same names. Because this package uses a separate pool, both packages can
be used in one process.
"""
