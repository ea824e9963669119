"""Data sets: readers and writers of ranking files, and seeded generators."""

from rankcore.datasets.generators import (
    make_bipartite,
    make_drift,
    make_letor,
    make_oap_synthetic,
    make_ordinal,
    quadratic_features,
)
from rankcore.datasets.judgments import JoinedRun, Qrels, Run, join_run
from rankcore.datasets.letor import LetorData, iter_letor, load_letor
from rankcore.datasets.letor_writer import dump_letor
from rankcore.datasets.row_files import open_rows
from rankcore.datasets.trec import read_qrels, read_run, write_qrels, write_run

__all__ = [
    "JoinedRun",
    "LetorData",
    "Qrels",
    "Run",
    "dump_letor",
    "iter_letor",
    "join_run",
    "load_letor",
    "make_bipartite",
    "make_drift",
    "make_letor",
    "make_oap_synthetic",
    "make_ordinal",
    "open_rows",
    "quadratic_features",
    "read_qrels",
    "read_run",
    "write_qrels",
    "write_run",
]
