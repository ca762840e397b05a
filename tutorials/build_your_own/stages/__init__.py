"""The twelve stages: a text (NAME.md) and the tester's checks (NAME.py) for each."""
