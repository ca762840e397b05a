"""The tester: starts a learner's broker, talks to it, kills it, reads its files, and says what it found."""
