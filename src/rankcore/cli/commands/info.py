"""``rankcore info``: the contents of a model file."""

from __future__ import annotations

from rankcore.cli.options import JsonOption, ModelArgument, NamesOption, read_names
from rankcore.cli.terminal import print_facts

# Maximum number of features listed.
LARGEST = 10


def info(model: ModelArgument, names: NamesOption = None, as_json: JsonOption = False) -> None:
    """Print a model's learner, parameters and training statistics."""
    import numpy as np

    import rankcore
    from rankcore._core.numbers import largest
    from rankcore.cli.models import name_features
    from rankcore.io.scaled import is_scaler, split_front

    front, learned = split_front(rankcore.load(model))
    if names is not None:
        name_features(learned, read_names(names))
    facts = {
        "learner": type(learned).__name__,
        "params": learned.get_params(),
        **learned._summary(),
        "features": getattr(learned, "n_features_in_", None),
    }
    if front is not None:
        listed = [front] if is_scaler(front) else [step for _, step in front.steps]
        facts["scaler" if is_scaler(front) else "steps"] = ", ".join(map(repr, listed))
    if hasattr(learned, "grades_"):
        facts["grades"] = learned.grades_.tolist()
    if hasattr(learned, "thresholds_"):
        facts["thresholds"] = learned.thresholds_.tolist()
    for attribute, number, top in [
        ("coef_", "nonzero_weights", "largest_weights"),
        ("feature_importances_", "features_used", "largest_importances"),
    ]:
        if hasattr(learned, attribute):
            values = getattr(learned, attribute)
            sizes = np.abs(values.reshape(-1, values.shape[-1])).max(axis=0)
            called = getattr(learned, "feature_names_in_", range(1, sizes.size + 1))
            facts[number] = int(np.count_nonzero(values))
            facts[top] = {str(called[j]): values[..., j].tolist() for j in largest(sizes, LARGEST)}
    print_facts(facts, as_json)
