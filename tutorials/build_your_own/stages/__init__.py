"""The twelve stages. Each stage has a text (NAME.md) and the tester's checks (NAME.py)."""
