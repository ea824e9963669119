"""Streams that change: progressive validation, drift, probabilities and sets of ranks, hashing.

A stream is an iterable of chunks: pairs (X, y), or objects with X, y and qid such as `Chunk`.
"""

from rankcore.online.calibration import OnlineCalibration
from rankcore.online.chunks import Chunk, hash_records
from rankcore.online.conformal import AdaptiveSets
from rankcore.online.drift import DriftMonitor
from rankcore.online.evaluation import StreamEvaluation, StreamWindow, evaluate

__all__ = [
    "AdaptiveSets",
    "Chunk",
    "DriftMonitor",
    "OnlineCalibration",
    "StreamEvaluation",
    "StreamWindow",
    "evaluate",
    "hash_records",
]
