"""``max_iter="auto"`` of `KernelPRank`: noisy labels keep the parameters of the fifth pass."""

import numpy as np
import pytest

import rankcore as rc

ARRAYS = ("support_", "dual_coef_", "thresholds_")


def labelled(noise, seed=0, n=60):
    """Rows whose ranks depend on a curve and on noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    score = (1 - noise) * np.sin(2 * X[:, 0]) + noise * rng.normal(size=n)
    return X, np.digitize(score, np.quantile(score, [0.25, 0.5, 0.75]))


def fitted(X, y, **params):
    return rc.KernelPRank(random_state=0, **params).fit(X, y)


def assert_equal(one, other):
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def is_noisy(model, y):
    """Whether the loss of the last pass is above 0.65 of that of the best constant."""
    constant = min(np.abs(y - rank).mean() for rank in np.unique(y))
    return model.history_["rank_loss"][-1] > 0.65 * constant


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("noise", [0.0, 0.4, 0.6, 1.0])
def test_loss_of_the_last_pass_selects_the_parameters(noise, seed):
    X, y = labelled(noise, seed)
    model, whole = fitted(X, y), fitted(X, y, max_iter=20)
    assert model.n_iter_ == 20
    assert model.history_["rank_loss"] == pytest.approx(whole.history_["rank_loss"], rel=0)
    if is_noisy(whole, y):
        assert model.best_iteration_ == 5
        assert_equal(model, fitted(X, y, max_iter=5))
    else:
        assert not hasattr(model, "best_iteration_")
        assert_equal(model, whole)


def test_both_choices_occur():
    chosen = {hasattr(fitted(*labelled(noise)), "best_iteration_") for noise in (0.0, 1.0)}
    assert chosen == {False, True}


def test_noise_is_fitted_by_later_passes():
    losses = {"auto": [], 20: []}
    for seed in range(10):
        X, y = labelled(0.8, seed, n=600)
        for passes, found in losses.items():
            found.append(-fitted(X[:100], y[:100], max_iter=passes).score(X[100:], y[100:]))
    assert np.mean(losses["auto"]) < np.mean(losses[20])


def test_explicit_number_of_passes_is_used():
    X, y = labelled(1.0)
    for model in (fitted(X, y, max_iter=30), rc.KernelPRank.published(max_iter=30).fit(X, y)):
        assert model.n_iter_ == 30
        assert not hasattr(model, "best_iteration_")


def test_held_out_rows_decide_with_early_stopping():
    X, y = labelled(1.0, n=120)
    model = rc.KernelPRank(random_state=0, early_stopping_rounds=20)
    model.fit(X[:60], y[:60], eval_set=(X[60:], y[60:]))
    best = 1 + int(np.argmin(model.history_["valid_rank_loss"]))
    assert model.best_iteration_ == best
    assert_equal(model, fitted(X[:60], y[:60], max_iter=best))


def test_weighted_rows_keep_the_last_parameters():
    X, y = labelled(1.0)
    weights = np.arange(1, 61) % 3 + 1
    model = rc.KernelPRank(random_state=0).fit(X, y, sample_weight=weights)
    assert not hasattr(model, "best_iteration_")
    assert model.n_iter_ == 20
    assert_equal(rc.KernelPRank(random_state=0).fit(X, y, sample_weight=np.ones(60)), fitted(X, y))


def test_a_stream_continues_from_the_fifth_pass():
    X, y = labelled(1.0, n=90)
    model, early = fitted(X[:60], y[:60]), fitted(X[:60], y[:60], max_iter=5)
    assert model.best_iteration_ == 5
    for one in (model, early):
        one.partial_fit(X[60:], y[60:])
    assert not hasattr(model, "best_iteration_")
    assert_equal(model, early)


def test_files_keep_the_choice(tmp_path):
    X, y = labelled(1.0)
    model = fitted(X, y)
    rc.save(model, tmp_path / "model.safetensors")
    loaded = rc.load(tmp_path / "model.safetensors")
    assert loaded.best_iteration_ == 5
    assert loaded.max_iter == "auto"
    assert_equal(loaded, model)


def test_other_words_are_rejected():
    with pytest.raises(ValueError, match="max_iter must be 'auto' or an integer >= 1; got 'all'"):
        fitted(*labelled(0.0), max_iter="all")
