"""The main job, `python -m demo`: orders under kills, until everything is settled, and a verdict."""
