"""A program with one database that is split into two services: what fails after the split, and how to repair it."""
