"""What all learners stand on: checked input, locks, random states."""
