"""The tester: starts a learner's broker, sends requests, kills it, reads its files, and reports its findings."""
