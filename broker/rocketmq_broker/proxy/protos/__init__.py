"""The messages of RocketMQ 5's API: the .proto files of apache/rocketmq-apis, and protoc's output (`make protos`).

The output is a descriptor set and stubs. protoc's Python code is not used for two reasons. It requires at least protoc's
release of protobuf. It also registers the messages in the default pool, where the messages of Apache's Python client have the
same names. Because this package uses a separate pool, both packages can be used in one process.
"""
