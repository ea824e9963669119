"""The commands, one module each. Private."""
