"""Ranking SVMs, linear and with kernels, and paths over C."""

from rankcore.ranking.svm._choice import RankSVMCV
from rankcore.ranking.svm._estimator import RankSVM
from rankcore.ranking.svm._path import SVMPath, ranksvm_path

__all__ = ["RankSVM", "RankSVMCV", "SVMPath", "ranksvm_path"]
