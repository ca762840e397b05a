"""Measures one load on two brokers in turn: ours and Apache RocketMQ."""
