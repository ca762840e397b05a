"""Runs a module as a process of the cluster: `python -m rocketmq_broker.cluster.member MODULE ARGUMENT...`.

The process ends when its supervisor ends, because its standard input is a pipe that only the supervisor keeps open.
"""

import runpy
import sys

from rocketmq_broker.platform.processes import end_with_input

if __name__ == "__main__":
    end_with_input()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
