"""The judges of a simulated world: each looks at it in another way, and tells the promises that were broken."""
