"""Note on runs that are too small for their gates."""


def not_gated(n: int, full: int, unit: str) -> str:
    """Return a note for a run too small for its gates; empty for one of full size.

    Gates are of the number of repetitions that a page is made with: fewer miss them by chance.
    """
    return "" if n >= full else f"not gated: {n} {unit} of {full}"
