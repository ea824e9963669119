"""Streams that change: progressive validation, and chunks hashed from dictionaries.

A stream is an iterable of chunks: pairs (X, y), or objects with X, y and qid such as `Chunk`.
"""

from rankcore.online.chunks import Chunk, hash_records
from rankcore.online.evaluation import StreamEvaluation, StreamWindow, evaluate

__all__ = ["Chunk", "StreamEvaluation", "StreamWindow", "evaluate", "hash_records"]
