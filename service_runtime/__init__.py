"""The shared runtime of the services, which knows nothing about orders or credits."""
