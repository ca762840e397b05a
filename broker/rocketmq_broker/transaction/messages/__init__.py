"""Half messages and op messages as they are stored."""
