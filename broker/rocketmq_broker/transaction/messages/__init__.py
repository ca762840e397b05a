"""Half messages and op messages as stored records."""
