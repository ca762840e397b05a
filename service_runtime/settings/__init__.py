"""Settings of the services, with their secrets, hosts and name servers."""
