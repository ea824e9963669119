"""Learning theory of ranking: margin bounds, mistake bounds, training bounds."""

from rankcore.bounds._curve import MarginCurve, margin_curve
from rankcore.bounds._margin import (
    ensemble_margin_bound,
    kernel_margin_bound,
    linear_complexity,
    rademacher_margin_bound,
    svm_bound,
    vc_complexity,
)
from rankcore.bounds._training import (
    cusum_mistake_bound,
    pairwise_mistake_bound,
    prank_mistake_bound,
    rankboost_training_bound,
)

__all__ = [
    "MarginCurve",
    "cusum_mistake_bound",
    "ensemble_margin_bound",
    "kernel_margin_bound",
    "linear_complexity",
    "margin_curve",
    "pairwise_mistake_bound",
    "prank_mistake_bound",
    "rademacher_margin_bound",
    "rankboost_training_bound",
    "svm_bound",
    "vc_complexity",
]
