"""`python -m pipelines`."""

from pipelines.command_line import application

if __name__ == "__main__":
    application(prog_name="python -m pipelines")
