"""The functions that differ between operating systems. A test checks that no other module depends on the system.

`durability` syncs files, `files` reads and writes files, and `locks` locks files. `memory`, `processors` and `limits` return the
machine's resources. `signals`, `processes` and `event_loop` run and stop programs. docs/platforms.md lists the guarantees on
Linux, macOS and Windows.
"""
