"""Learning to rank: exact, online, sparse-native.

Names are imported on first use, so that ``import rankcore`` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rankcore._core.public_names import HOME

if TYPE_CHECKING:
    from rankcore import (
        bounds,
        callbacks,
        clicks,
        dask,
        datasets,
        explain,
        exporters,
        interleaving,
        metrics,
        model_selection,
        plotting,
        preference,
        progress,
    )
    from rankcore.boosting.bipartite import BipartiteRankBoost
    from rankcore.boosting.ordinal_boost import OrdinalBoost
    from rankcore.boosting.rankboost import RankBoost
    from rankcore.exporters.exporting import export
    from rankcore.io.model_file import load, save
    from rankcore.io.predictor import Predictor
    from rankcore.ordinal.baselines import MulticlassPerceptron, WidrowHoff
    from rankcore.ordinal.calibrated import CalibratedOrdinal
    from rankcore.ordinal.cusum import CuSumRank
    from rankcore.ordinal.kernel.cusum import KernelCuSumRank
    from rankcore.ordinal.kernel.oap import KernelOAPBPM
    from rankcore.ordinal.kernel.prank import KernelPRank
    from rankcore.ordinal.merge import merge
    from rankcore.ordinal.oap import OAPBPM, OAPBagging, OAPVoting
    from rankcore.ordinal.prank import PRank
    from rankcore.ordinal.rule import PythonRule, PythonScoreRule
    from rankcore.ordinal.voted import VotedPRank
    from rankcore.preference import (
        PairwisePreference,
        PreferenceRanker,
        quicksort_rank,
        sort_by_degree,
    )
    from rankcore.ranking.perceptron import PairwisePerceptron
    from rankcore.ranking.svm import RankSVM, RankSVMCV, ranksvm_path
    from rankcore.structured import KernelStructuredPerceptron, StructuredPerceptron

__all__ = [
    "OAPBPM",
    "BipartiteRankBoost",
    "CalibratedOrdinal",
    "CuSumRank",
    "KernelCuSumRank",
    "KernelOAPBPM",
    "KernelPRank",
    "KernelStructuredPerceptron",
    "MulticlassPerceptron",
    "OAPBagging",
    "OAPVoting",
    "OrdinalBoost",
    "PRank",
    "PairwisePerceptron",
    "PairwisePreference",
    "Predictor",
    "PreferenceRanker",
    "PythonRule",
    "PythonScoreRule",
    "RankBoost",
    "RankSVM",
    "RankSVMCV",
    "StructuredPerceptron",
    "VotedPRank",
    "WidrowHoff",
    "bounds",
    "callbacks",
    "clicks",
    "dask",
    "datasets",
    "explain",
    "export",
    "exporters",
    "get_include",
    "interleaving",
    "load",
    "merge",
    "metrics",
    "model_selection",
    "plotting",
    "preference",
    "progress",
    "quicksort_rank",
    "ranksvm_path",
    "save",
    "sort_by_degree",
]


def get_include() -> str:
    """Directory of ``rankcore.h`` and the other headers, for a compiler's include path.

    ``rankcore-config`` prints it, and the directories of the files for CMake and pkg-config.

    Returns
    -------
    str

    Examples
    --------
    >>> import os, rankcore
    >>> {"rankcore.h", "rankcore_capi.h", "rankcore_model.h"} <= set(os.listdir(
    ...     rankcore.get_include()))
    True
    """
    from pathlib import Path

    return str(Path(__file__).parent / "include")


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("rankcore")
    if name in HOME:
        value = getattr(import_module(HOME[name]), name)
        globals()[name] = value
        return value
    if name in __all__:
        return import_module(f"rankcore.{name}")
    raise AttributeError(f"module 'rankcore' has no attribute {name!r}{_meant(name)}")


def _meant(name: str) -> str:
    """Hint with the most similar public name; empty for names that tools look up."""
    if name.startswith("_"):
        return ""
    from difflib import get_close_matches

    by_letters = {one.lower(): one for one in __all__}
    near = get_close_matches(name.lower(), by_letters, n=1, cutoff=0.75)
    return f": did you mean {by_letters[near[0]]}?" if near else ""


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
