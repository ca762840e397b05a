"""A RocketMQ for tests: broker and name server in the test's process, with a clock that the test moves."""
