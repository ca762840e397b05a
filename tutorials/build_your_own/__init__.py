"""A course in twelve stages: build your own transactional broker in any language. A tester checks each stage."""
