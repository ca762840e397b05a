"""How long one client can stop the event loop of the broker and the name server: `python -m benchmarks.longest_stop`.

Each row is one module in `rows`, found by listing that folder. It says in `WHAT` what the client does, in `SETTINGS`, if it needs
any, how the broker is configured (properties of broker.conf), and does it in `async def run(stage)`: it prepares, calls
`await stage.begin()`, and does the thing itself. Its prose is its docstring.

`by_code` has a question for each request code, and a test holds it to the codes that are answered. The argument `codes` asks them
all, and `LOCK_BATCH_MQ` one.
"""
