"""The scripts and files to set up, build and release the project, and to run it in containers."""
