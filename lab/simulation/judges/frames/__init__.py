"""What the frames of a world say: each is watched, and told as an arrow."""
