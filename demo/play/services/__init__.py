"""The order service and the credit service of a session, built from their own parts on the page's event loop."""
