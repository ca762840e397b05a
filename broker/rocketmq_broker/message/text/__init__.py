"""What people and Java read: printable text, fastjson's JSON, the ranges of Java's numbers, sentences about mistakes."""
