"""``rankcore info``: the contents of a model file."""

from __future__ import annotations

from rankcore.cli.options import JsonOption, ModelArgument
from rankcore.cli.terminal import print_facts

# Maximum number of features listed.
LARGEST = 10


def info(model: ModelArgument, as_json: JsonOption = False) -> None:
    """Print a model's learner, parameters and training statistics."""
    import numpy as np

    import rankcore
    from rankcore.io.scaled import is_scaler, split_front

    front, learned = split_front(rankcore.load(model))
    facts = {
        "learner": type(learned).__name__,
        "params": learned.get_params(),
        **learned._summary(),
        "features": getattr(learned, "n_features_in_", None),
    }
    if front is not None:
        listed = [front] if is_scaler(front) else [step for _, step in front.steps]
        facts["scaler" if is_scaler(front) else "steps"] = ", ".join(map(repr, listed))
    if hasattr(learned, "thresholds_"):
        facts["thresholds"] = learned.thresholds_.tolist()
    if hasattr(learned, "coef_"):
        coef = learned.coef_
        size = np.abs(coef.reshape(-1, coef.shape[-1])).max(axis=0)
        largest = [j for j in np.argsort(-size, kind="stable")[:LARGEST].tolist() if size[j]]
        names = getattr(learned, "feature_names_in_", range(1, size.size + 1))
        facts["nonzero_weights"] = int(np.count_nonzero(coef))
        facts["largest_weights"] = {str(names[j]): coef[..., j].tolist() for j in largest}
    if hasattr(learned, "feature_importances_"):
        shares = learned.feature_importances_
        largest = [j for j in np.argsort(-shares, kind="stable")[:LARGEST].tolist() if shares[j]]
        names = getattr(learned, "feature_names_in_", range(1, shares.size + 1))
        facts["features_used"] = int(np.count_nonzero(shares))
        facts["largest_importances"] = {str(names[j]): float(shares[j]) for j in largest}
    print_facts(facts, as_json)
