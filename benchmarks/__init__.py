"""How fast the broker is: side by side with Apache RocketMQ, alone under a profiler, and its hot path without any socket."""
