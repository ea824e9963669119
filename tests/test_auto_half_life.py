"""half_life="auto": the candidates, their losses on a stream, and the choice among them."""

import numpy as np
import pytest
from sklearn.base import clone

import rankcore as rc
from declared import walk
from rankcore._ext.online_model import HALF_LIVES
from test_forgetting import CLASSES, FORGETFUL, averaging, by_age, iterates, stream, with_constants

pytestmark = pytest.mark.kernel

CHOOSERS = [with_constants(one) for one in FORGETFUL if averaging(one) == "average"]


@walk(CHOOSERS)
def test_averages_equal_those_of_stored_iterates(learner):
    X, y = stream(300)
    model = clone(learner).set_params(half_life="auto")
    model = model.partial_fit(X, y, classes=CLASSES)._state.model
    stored = [*iterates(learner, X, y)]
    for name, last in stored[-1].items():
        if name == "thresholds" and isinstance(learner, rc.OrdinalLogistic):
            continue  # the first row of a rank moves them by a long step
        of_name = [one[name] for one in stored]
        for c, half_life in enumerate((1e15, *HALF_LIVES)):
            found = last - model[name + "_sums"][..., c] / model["past_weight"][c]
            expected = by_age(of_name, half_life)
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@walk([one for one in CHOOSERS if not isinstance(one, rc.OrdinalLogistic)])
def test_losses_are_measured_before_rows_are_learned(learner):
    X, y = stream(500, seed=1)
    if isinstance(learner, rc.CuSumRank):
        learner = clone(learner).set_params(decision="cusum")
    last = clone(learner).set_params(average=False)
    others = [clone(learner).set_params(half_life=h) for h in (None, *HALF_LIVES)]
    candidates = [last, *others]
    losses, chosen, choices = np.zeros(5), 1, []
    auto = clone(learner).set_params(half_life="auto")
    for i in range(500):
        row, label = X[i : i + 1], y[i : i + 1]
        # Nothing is learned yet: all weights are 0.
        begun = [one.predict(row)[0] for one in candidates] if i else None
        auto.partial_fit(row, label, classes=CLASSES)
        for one in candidates:
            one.partial_fit(row, label, classes=CLASSES)
        if i == 0:
            losses = auto._state.model["choice"][:5].copy()
            assert len(set(losses)) == 1
        else:
            losses = 0.995 * losses + np.abs(np.array(begun) - label)
        if losses.min() < 0.95 * losses[chosen]:
            chosen = int(losses.argmin())
        choices.append(chosen)
        np.testing.assert_allclose(auto._state.model["choice"][:5], losses, rtol=1e-9)
        assert auto._state.model["choice"][5] == chosen
    assert len(set(choices)) > 1
    assert auto.half_life_ == (0, np.inf, *HALF_LIVES)[chosen]
    np.testing.assert_allclose(
        auto.decision_function(X), candidates[chosen].decision_function(X), rtol=1e-7, atol=1e-7
    )


@walk(CHOOSERS)
@pytest.mark.parametrize("standardize", [False, "auto"])
def test_choice_does_not_depend_on_chunk_sizes(learner, standardize, tmp_path):
    X, y = stream(900)
    learner = clone(learner).set_params(half_life="auto", standardize=standardize)
    whole = clone(learner).partial_fit(X, y, classes=CLASSES)
    cut = clone(learner)
    for part in np.split(np.arange(900), [1, 2, 10, 130, 131, 700]):
        cut.partial_fit(X[part], y[part], classes=CLASSES)
        rc.save(cut, tmp_path / "model")
        cut = rc.load(tmp_path / "model")
    assert cut._state.model == whole._state.model


@walk(CHOOSERS)
def test_models_that_choose_cannot_be_merged(learner):
    X, y = stream()
    model = clone(learner).set_params(half_life="auto").fit(X, y)
    with pytest.raises(ValueError, match="cannot be merged .* set half_life to a number"):
        rc.merge([model, model])


@walk([one for one in FORGETFUL if averaging(one) != "average"])
def test_ensembles_reject_auto(learner):
    X, y = stream()
    with pytest.raises(TypeError, match="half_life must be .*; got 'auto'"):
        clone(learner).set_params(half_life="auto").fit(X, y)


def drifting(kind, noise, n=6000, seed=0):
    """Return a stream whose direction turns: not, at once, gradually, or there and back."""
    rng = np.random.default_rng(seed)
    directions = np.linalg.qr(rng.normal(size=(8, 2)))[0].T
    t = np.arange(n)
    angle = {
        "none": np.zeros(n),
        "abrupt": t // 2000 * 1.9,
        "gradual": t / n * 2 * np.pi,
        "returning": t // 1500 % 2 * 2.1,
    }[kind]
    X = rng.normal(size=(n, 8))
    score = (np.cos(angle)[:, None] * directions[0] + np.sin(angle)[:, None] * directions[1]) * X
    return X, np.digitize(score.sum(axis=1) + noise * rng.normal(size=n), [-1, -0.3, 0.3, 1])


def progressive_loss(learner, X, y):
    total = 0
    for i in range(len(y)):
        if i:
            total += abs(int(learner.predict(X[i : i + 1])[0]) - y[i])
        learner.partial_fit(X[i : i + 1], y[i : i + 1], classes=range(5))
    return total / len(y)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, 0.5])
@pytest.mark.parametrize("kind", ["none", "abrupt", "gradual", "returning"])
def test_chosen_half_life_follows_a_stream(kind, noise):
    X, y = drifting(kind, noise)
    last, plain, auto = (
        progressive_loss(rc.PRank(**params), X, y)
        for params in ({"average": False}, {}, {"half_life": "auto"})
    )
    if kind == "none":
        assert auto <= 1.01 * plain
    else:
        assert auto <= 0.9 * min(last, plain)
