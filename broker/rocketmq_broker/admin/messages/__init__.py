"""Single messages: `message` finds them, `tail` follows them, `send` makes one."""
