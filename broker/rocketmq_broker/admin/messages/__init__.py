"""Single messages: `message` finds them, `tail` follows them, `send` sends one."""
