"""The shared runtime of the services, independent of orders and credits."""
