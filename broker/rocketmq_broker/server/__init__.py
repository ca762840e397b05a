"""The broker's request processors, one for each family of request codes, and the parts that they share."""
