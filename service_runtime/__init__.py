"""What the order and the credit service need to run, and what has nothing to do with orders or credits."""
