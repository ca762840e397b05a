"""Half messages and op messages in their stored form."""
