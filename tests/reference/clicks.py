"""Click models, plain: loops over sessions and over everything a user may have done."""

from math import log


def position_pass(cells, examination, attraction):
    """Return expected examinations by position, attractive impressions by document, likelihood.

    ``cells`` are (document, position, impressions without a click, with one).
    """
    examined, attracted = {p: 0.0 for p in examination}, {d: 0.0 for d in attraction}
    value = 0.0
    for document, position, skipped, clicked in cells:
        theta, gamma = examination[position], attraction[document]
        # The three ways not to click.
        seen, liked, neither = (
            theta * (1 - gamma),
            (1 - theta) * gamma,
            (1 - theta) * (1 - gamma),
        )
        total = seen + liked + neither
        examined[position] += clicked + skipped * seen / total
        attracted[document] += clicked + skipped * liked / total
        value += skipped * log(total) + (clicked * log(theta * gamma) if clicked else 0.0)
    return examined, attracted, value


def cascade(sessions):
    """Attraction by document: clicks of those down to the first click.

    A session is a list of (document, clicked).
    """
    clicked, examined = {}, {}
    for session in sessions:
        for document, click in session:
            examined[document] = examined.get(document, 0) + 1
            clicked[document] = clicked.get(document, 0) + click
            if click:
                break
    return {document: clicked[document] / n for document, n in examined.items()}


def simplified(sessions):
    """Attraction and satisfaction by document: the last click satisfies and ends the session."""
    examined, clicked, satisfied = {}, {}, {}
    for session in sessions:
        places = [i for i, (_, click) in enumerate(session) if click]
        stop = places[-1] + 1 if places else len(session)
        for i, (document, click) in enumerate(session[:stop]):
            examined[document] = examined.get(document, 0) + 1
            clicked[document] = clicked.get(document, 0) + click
            last = bool(places) and i == places[-1]
            satisfied[document] = satisfied.get(document, 0) + last
    return (
        {d: clicked[d] / n for d, n in examined.items()},
        {d: satisfied[d] / n for d, n in clicked.items() if n},
    )


def bayesian_posteriors(session, attraction, satisfaction, onward):
    """Probability of the clicks of a session, and what is expected of the user given them.

    Every place where the user may have stopped, and why: expected examinations and satisfactions
    by place, chances to go on and those taken.
    """
    n = len(session)
    paths = []  # probability, documents examined, whether the last of them satisfied
    for stop in range(1, n + 1):
        if any(click for _, click in session[stop:]):
            continue
        p = 1.0
        for i, (document, click) in enumerate(session[:stop]):
            p *= attraction[document] if click else 1 - attraction[document]
            if i < stop - 1:
                p *= onward * (1 - satisfaction[document] * click)
        document, click = session[stop - 1]
        pleased = satisfaction[document] * click
        paths.append((p * pleased, stop, True))
        paths.append((p * (1 - pleased) * (1.0 if stop == n else 1 - onward), stop, False))
    total = sum(p for p, _, _ in paths)
    examined, satisfied, chances, taken = [0.0] * n, [0.0] * n, 0.0, 0.0
    for p, stop, pleased in paths:
        for i in range(stop):
            examined[i] += p / total
        satisfied[stop - 1] += p / total * pleased
        taken += p / total * (stop - 1)
        chances += p / total * (stop - 1 + (stop < n and not pleased))
    return total, examined, satisfied, chances, taken
