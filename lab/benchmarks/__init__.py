"""The broker's speed: side by side with Apache RocketMQ and its hot path without sockets."""
