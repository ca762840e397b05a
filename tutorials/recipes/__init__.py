"""Small complete programs to copy, each in its own folder. `tutorials/recipes/README.md` lists them."""
