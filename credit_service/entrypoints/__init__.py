"""The entry points of the credit service, which are the HTTP application and the process."""
