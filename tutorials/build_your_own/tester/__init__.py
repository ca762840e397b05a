"""The tester: starts the broker under test, sends requests, kills it, reads its files, and reports its findings."""
