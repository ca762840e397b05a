"""Build your own transactional broker, in any language, in twelve stages; a tester shows your progress."""
