"""Click logs and click models: seconds per 10^7 impressions."""

import tempfile
from pathlib import Path

import numpy as np

from benchmarks.measure import machine, processor_seconds, show, sized
from rankcore._ext.clicks import bayesian_pass, position_pass
from rankcore.clicks import (
    CascadeModel,
    PositionBasedModel,
    User,
    click_pairs,
    open_clicks,
    propensities,
    simulate_clicks,
    simulate_sessions,
)
from rankcore.clicks._counts import clicks, count

N_QUERIES, N_DOCUMENTS = sized(20_000, 200), 20
N_SESSIONS = sized(200_000, 2_000)  # 2 * 10^6 impressions: times are scaled to 10^7
SCALE = 10_000_000 / (10 * N_SESSIONS)


def run(repeat: int) -> None:
    """Measure and print."""
    print(machine(), "\n")
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(N_QUERIES), N_DOCUMENTS)
    docid = np.tile(np.arange(N_DOCUMENTS), N_QUERIES)
    attraction = rng.beta(1, 4, qid.size)
    log, row = simulate_sessions(qid, docid, rng.random(qid.size), N_SESSIONS, swap=0.2)
    log = simulate_clicks(log, attraction[row], user=User(), random_state=0)
    counts = count(log, clicks, 2)
    n_pairs = counts.pairs.query.size
    theta, gamma = np.full(10, 0.5), np.full(n_pairs, 0.5)
    examined, attracted = np.empty(10), np.empty(n_pairs)
    # The most cells there can be: one for each impression.
    pair = counts.pairs.of(log).astype(np.int32)
    place = (log.position - 1).astype(np.int32)
    events = np.zeros((len(log), 2))
    events[np.arange(len(log)), log.clicked.astype(int)] = 1.0
    clicked, expected = log.clicked.view(np.uint8), np.zeros((n_pairs, 4))
    seconds = processor_seconds(
        min(repeat, 5),
        position=lambda: position_pass(pair, place, events, theta, gamma, examined, attracted),
        bayesian=lambda: bayesian_pass(
            log.bounds, pair, clicked, gamma, gamma, 0.9, expected, np.zeros(3), np.empty(11)
        ),
        count=lambda: count(log, clicks, 2),
        cascade=lambda: CascadeModel().fit(log),
        model=lambda: PositionBasedModel(tol=1e-6).fit(log),
        swap=lambda: propensities(log, "swap"),
        pairs=lambda: click_pairs(log, qid, docid, np.ones(10)),
    )
    rows = []
    for name, what, target in [
        ("position", "pass of the position-based model, one cell per impression", "at most 1 s"),
        ("bayesian", "pass of the dynamic Bayesian network", "at most 1 s"),
        ("count", "counting documents by position", ""),
        ("model", "position-based model, counted and fitted to 1e-6", ""),
        ("cascade", "cascade model", ""),
        ("swap", "propensities by swap", ""),
        ("pairs", "weighted pairs", ""),
    ]:
        rows.append((f"{what}, 10^7 impressions", f"{SCALE * seconds[name]:.2f} s", target))
    show([*rows, *reading(min(repeat, 3), log)])


def reading(repeat, log):
    """Return a tenth of the log as CSV."""
    stop = int(log.bounds[N_SESSIONS // 10])
    session = log.session[:stop].tolist()
    columns = [log.query, log.document, log.position, log.clicked.astype(int)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        with path.open("w") as file:
            file.write("session,query,document,position,clicked\n")
            for row in zip(session, *(one[:stop].tolist() for one in columns), strict=True):
                file.write(",".join(map(str, row)) + "\n")
        seconds = processor_seconds(repeat, csv=lambda: sum(map(len, open_clicks(path))))
    return [("reading CSV, 10^7 impressions", f"{10 * SCALE * seconds['csv']:.1f} s", "")]
