"""The messages of RocketMQ 5's API: the .proto of apache/rocketmq-apis, and what protoc makes of them (`make protos`).

Kept are a descriptor set and stubs, not protoc's Python code: that asks for the protobuf of its own release or a later one, and
puts its messages into the process's one pool. Apache's Python client does so too, under the same names. The pool here is apart,
so that both work in one process.
"""
