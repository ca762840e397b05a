"""Orders and their rules, independent of database, broker and HTTP."""
