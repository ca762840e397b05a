"""A program with one database is split into two services: what fails after the split, and how to fix it."""
