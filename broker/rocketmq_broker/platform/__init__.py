"""What differs between operating systems. All other modules are the same on Linux, macOS and Windows, and a test holds that.

`durability` syncs files, `files` reads and writes them, `locks` locks them; `memory`, `processors` and `limits` say what the
machine has; `signals`, `processes` and `event_loop` stop programs and run them. docs/platforms.md says what each system promises.
"""
