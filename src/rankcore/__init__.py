"""Learning to rank: exact, online, sparse-native.

Names are bound on first use, so that ``import rankcore`` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankcore import bounds, datasets, metrics, plotting, progress
    from rankcore.boosting import BipartiteRankBoost, RankBoost
    from rankcore.ensemble import OAPBPM, OAPBagging, OAPVoting
    from rankcore.mixing import merge
    from rankcore.ordinal import CuSumRank, PRank
    from rankcore.pairwise import PairwisePerceptron
    from rankcore.persistence import load, save
    from rankcore.rivals import MulticlassPerceptron, WidrowHoff
    from rankcore.structured import StructuredPerceptron
    from rankcore.svm import RankSVM, RankSVMCV, ranksvm_path
    from rankcore.voted import VotedPRank

_HOME = {
    "BipartiteRankBoost": "rankcore.boosting",
    "CuSumRank": "rankcore.ordinal",
    "MulticlassPerceptron": "rankcore.rivals",
    "OAPBPM": "rankcore.ensemble",
    "OAPBagging": "rankcore.ensemble",
    "OAPVoting": "rankcore.ensemble",
    "PRank": "rankcore.ordinal",
    "PairwisePerceptron": "rankcore.pairwise",
    "RankBoost": "rankcore.boosting",
    "RankSVM": "rankcore.svm",
    "RankSVMCV": "rankcore.svm",
    "StructuredPerceptron": "rankcore.structured",
    "VotedPRank": "rankcore.voted",
    "WidrowHoff": "rankcore.rivals",
    "load": "rankcore.persistence",
    "merge": "rankcore.mixing",
    "ranksvm_path": "rankcore.svm",
    "save": "rankcore.persistence",
}
_MODULES = ["bounds", "datasets", "metrics", "plotting", "progress"]

__all__ = [
    "OAPBPM",
    "BipartiteRankBoost",
    "CuSumRank",
    "MulticlassPerceptron",
    "OAPBagging",
    "OAPVoting",
    "PRank",
    "PairwisePerceptron",
    "RankBoost",
    "RankSVM",
    "RankSVMCV",
    "StructuredPerceptron",
    "VotedPRank",
    "WidrowHoff",
    "bounds",
    "datasets",
    "get_include",
    "load",
    "merge",
    "metrics",
    "plotting",
    "progress",
    "ranksvm_path",
    "save",
]


def get_include() -> str:
    """Directory of ``rankcore.h`` and ``rankcore_capi.h``, for a compiler's include path.

    Returns
    -------
    str

    Examples
    --------
    >>> import os, rankcore
    >>> sorted(os.listdir(rankcore.get_include()))
    ['rankcore.h', 'rankcore_capi.h']
    """
    from pathlib import Path

    return str(Path(__file__).parent / "include")


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("rankcore")
    if name in _MODULES:
        return import_module(f"rankcore.{name}")
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'rankcore' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
