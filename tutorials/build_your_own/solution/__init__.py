"""A learner's broker: all twelve stages in plain Python, without a library. Read it after you have tried for yourself.

`python -m tutorials.build_your_own.solution -c broker.conf` runs it. Each module names the stage that needs it.
"""
