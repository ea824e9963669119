"""Modules of the public names; a module is imported when one of its names is first used."""

HOME = {
    "BipartiteRankBoost": "rankcore.boosting.bipartite",
    "CalibratedOrdinal": "rankcore.ordinal.calibrated",
    "CuSumRank": "rankcore.ordinal.cusum",
    "KernelCuSumRank": "rankcore.ordinal.kernel.cusum",
    "KernelOAPBPM": "rankcore.ordinal.kernel.oap",
    "KernelPRank": "rankcore.ordinal.kernel.prank",
    "KernelStructuredPerceptron": "rankcore.structured",
    "MulticlassPerceptron": "rankcore.ordinal.baselines",
    "OAPBPM": "rankcore.ordinal.oap",
    "OAPBagging": "rankcore.ordinal.oap",
    "OAPVoting": "rankcore.ordinal.oap",
    "OrdinalBoost": "rankcore.boosting.ordinal_boost",
    "PRank": "rankcore.ordinal.prank",
    "PairwisePerceptron": "rankcore.ranking.perceptron",
    "PairwisePreference": "rankcore.preference",
    "Predictor": "rankcore.io.predictor",
    "PreferenceRanker": "rankcore.preference",
    "PythonRule": "rankcore.ordinal.rule",
    "PythonScoreRule": "rankcore.ordinal.rule",
    "RankBoost": "rankcore.boosting.rankboost",
    "RankSVM": "rankcore.ranking.svm",
    "RankSVMCV": "rankcore.ranking.svm",
    "StructuredPerceptron": "rankcore.structured",
    "VotedPRank": "rankcore.ordinal.voted",
    "WidrowHoff": "rankcore.ordinal.baselines",
    "export": "rankcore.exporters.exporting",
    "load": "rankcore.io.model_file",
    "merge": "rankcore.ordinal.merge",
    "quicksort_rank": "rankcore.preference",
    "ranksvm_path": "rankcore.ranking.svm",
    "save": "rankcore.io.model_file",
    "sort_by_degree": "rankcore.preference",
}

# Learners that are public only in their subpackage; files name them, too.
IN_ROOMS = {"PairwiseGradientRanker": "rankcore.clicks.online"}
