"""Records a run of the demo as an animated SVG: `python -m demo.recording`, or `make recording`."""
