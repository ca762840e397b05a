"""A solution of all twelve stages in plain Python, without a library. Read it after trying yourself.

`python -m tutorials.build_your_own.solution -c broker.conf` runs it. Each module names its stages.
"""
