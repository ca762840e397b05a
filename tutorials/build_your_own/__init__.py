"""Build your own transactional broker, in any language, in twelve stages; a tester says how far you are."""
