"""The twelve stages: for each a text (NAME.md) and what the tester does (NAME.py)."""
