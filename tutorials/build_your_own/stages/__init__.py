"""The twelve stages. Each has a text (NAME.md) and the tester's checks (NAME.py)."""
