"""Records a real run of the demo as an animated picture: `python -m demo.recording`, or `make recording`."""
