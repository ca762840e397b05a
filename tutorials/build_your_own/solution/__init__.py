"""A solution of all twelve stages in plain Python, without a library. Read it after your own attempt.

`python -m tutorials.build_your_own.solution -c broker.conf` runs the broker. The docstring of each module names the module's
stages.
"""
