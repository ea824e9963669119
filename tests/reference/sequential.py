"""The wealth of gamblers who bet on preferences, plainly: one preference after the other."""

from fractions import Fraction


def wealth(preferences, mean, bets):
    """Mean wealth of gamblers who bet the same share each time, on either side."""
    found = []
    for bet in [*bets, *(-bet for bet in bets)]:
        stake = Fraction(1)
        for x in preferences:
            stake *= 1 + Fraction(bet) * (Fraction(x) - Fraction(mean))
        found.append(stake)
    return sum(found) / len(found)
