"""Lists, shows, retries and dismisses dead letters of consumer groups."""
