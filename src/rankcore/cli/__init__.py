"""The ``rankcore`` command."""
