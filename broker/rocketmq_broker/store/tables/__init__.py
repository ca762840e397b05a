"""Tables kept as JSON files, in RocketMQ's layouts."""
