"""Pictures worked out from records and figures: places and sizes in, nothing drawn yet. Templates turn them into SVG."""
