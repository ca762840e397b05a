"""Recipes: small complete programs, each in a folder to copy. `tutorials/recipes/README.md` lists them."""
