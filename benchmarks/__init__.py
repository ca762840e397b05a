"""The broker's speed: side by side with Apache RocketMQ, alone under a profiler, and its hot path without sockets."""
