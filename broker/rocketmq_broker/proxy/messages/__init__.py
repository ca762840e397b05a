"""The API's messages beside the broker's."""
