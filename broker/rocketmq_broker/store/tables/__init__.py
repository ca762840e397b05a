"""Tables stored as JSON files, in RocketMQ's layouts."""
