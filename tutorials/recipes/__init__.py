"""Recipes: small programs of their own, each in a folder to copy. `tutorials/recipes/README.md` lists them."""
