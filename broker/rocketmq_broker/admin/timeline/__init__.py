"""What happened to one transaction, step by step, and who has it on record: `timeline`."""
