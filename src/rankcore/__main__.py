"""``python -m rankcore`` is the ``rankcore`` command."""

from rankcore.cli.app import main

if __name__ == "__main__":
    main()
