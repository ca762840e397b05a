"""The longest stop of the broker's or name server's event loop by one client: `python -m benchmarks.longest_stop`.

Each row is one module in `rows`, found by listing that folder. Its `WHAT` names the client's action, its optional `SETTINGS` are
properties of broker.conf. Its `async def run(stage)` prepares, calls `await stage.begin()`, and then performs the action. Its
description is its docstring.

`by_code` has a question for each request code; a test compares them with the codes that are answered. The argument `codes` asks
them all, `LOCK_BATCH_MQ` asks one.
"""
