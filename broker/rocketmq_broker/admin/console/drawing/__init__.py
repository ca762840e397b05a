"""The geometry of pictures, computed from records and figures. Templates turn it into SVG."""
