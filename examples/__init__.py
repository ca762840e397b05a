"""Recipes: small programs of their own, each in a folder to copy. `examples/README.md` lists them."""
