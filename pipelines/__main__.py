"""`python -m pipelines`."""

import logging

from broker.logs import log_to_stderr
from pipelines.command_line import application

if __name__ == "__main__":
    log_to_stderr(logging.WARNING)
    application(prog_name="python -m pipelines")
