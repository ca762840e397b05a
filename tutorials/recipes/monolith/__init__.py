"""A recipe that splits a program with one database into two services. It shows what fails after the split, and how to fix it."""
