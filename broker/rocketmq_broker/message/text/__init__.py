"""Text formats: printable text, fastjson's JSON, the ranges of Java's numbers, and error messages about arguments."""
