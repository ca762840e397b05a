"""The parts of a service with an inbox (`rocketmq_broker.databases.inbox`): listener, threads, health and command."""
