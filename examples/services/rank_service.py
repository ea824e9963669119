"""A ranker behind HTTP, with FastAPI: requests that wait together are scored by one call.

    python rank_service.py ranker.rank --port 8000
    curl -d '{"rows": [[0.1, 0.9], [0.3, 0.2]]}' localhost:8000/rank

`/rank` answers with the scores of the rows and their order, `/metrics` with counters and times for
Prometheus, `/health` with the model. Needs ``pip install rankcore fastapi uvicorn[standard]
prometheus-client``.
"""

import argparse
import asyncio
import time
from contextlib import asynccontextmanager

import numpy as np
from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from pydantic_core import from_json  # parses numbers in a fifth of json's time

import rankcore as rc

SECONDS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1]
ROWS = [1, 10, 100, 1000, 10_000]


class Batcher:
    """Rows of waiting requests, scored together; what comes meanwhile waits for the next call.

    A call takes at most `most_rows`; beyond `longest_queue` requests new ones are rejected, so that
    those that are answered are answered in time.
    """

    def __init__(self, model, registry, most_rows=20_000, longest_queue=2_000):
        self.model, self.most_rows, self.longest_queue = model, most_rows, longest_queue
        self.waiting = asyncio.Queue()
        self.batches = Histogram(
            "rank_batch_rows", "Rows per call", buckets=ROWS, registry=registry
        )

    async def score(self, X):
        """Scores of the rows of one request."""
        if self.waiting.qsize() >= self.longest_queue:
            raise HTTPException(503, "too many requests wait", {"retry-after": "1"})
        done = asyncio.get_running_loop().create_future()
        self.waiting.put_nowait((X, done))
        return await done

    async def run(self):
        """Score what waits, until cancelled."""
        while True:
            requests = [await self.waiting.get()]
            rows = len(requests[0][0])
            while not self.waiting.empty() and rows < self.most_rows:
                requests.append(self.waiting.get_nowait())
                rows += len(requests[-1][0])
            self.batches.observe(rows)
            X = np.concatenate([X for X, _ in requests])
            # Large batches are scored in another thread, so that this one can accept requests; for
            # small ones a thread costs more than the scores.
            try:
                predict = self.model.predict
                scores = await asyncio.to_thread(predict, X) if rows > 2_000 else predict(X)
            except Exception as error:  # the requests of this call get it; the next are scored
                for _, done in requests:
                    if not done.done():
                        done.set_exception(error)
                continue
            first = 0
            for X, done in requests:
                if not done.done():  # the client may have disconnected
                    done.set_result(scores[first : first + len(X)])
                first += len(X)


def make_app(model):
    """Return the application for a `Predictor` of a ranker."""
    registry = CollectorRegistry()
    answered = Counter("rank_requests", "Requests by status", ["status"], registry=registry)
    took = Histogram("rank_seconds", "Time per request", buckets=SECONDS, registry=registry)
    batcher = Batcher(model, registry)

    @asynccontextmanager
    async def lifespan(app):
        task = asyncio.create_task(batcher.run())
        yield
        task.cancel()

    app = FastAPI(title="ranker", lifespan=lifespan)

    @app.post("/rank")
    async def rank(request: Request):
        """Scores of rows, and their indices by descending score."""
        start = time.perf_counter()
        try:
            X = read_rows(from_json(await request.body()), model.n_features_in_)
        except (ValueError, TypeError, KeyError) as error:
            answered.labels("422").inc()
            raise HTTPException(422, str(error)) from error
        try:
            scores = await batcher.score(X)
        except HTTPException as error:
            answered.labels(str(error.status_code)).inc()
            raise
        except Exception as error:
            answered.labels("500").inc()
            raise HTTPException(500, f"the rows could not be scored: {error}") from error
        order = np.argsort(-scores, kind="stable")
        answered.labels("200").inc()
        took.observe(time.perf_counter() - start)
        # Without FastAPI's walk through every number.
        return JSONResponse({"scores": scores.tolist(), "order": order.tolist()})

    @app.get("/metrics")
    def metrics():
        """Counters and histograms."""
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    @app.get("/health")
    def health():
        """Return the learner and its number of features."""
        return {"learner": model.learner, "n_features": model.n_features_in_}

    return app


def read_rows(body, n_features):
    """Return the array of a request; raise ValueError if it is not valid."""
    if not isinstance(body, dict) or "rows" not in body:
        raise ValueError('the body must be {"rows": [[...], ...]}')
    X = np.asarray(body["rows"], dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != n_features:
        raise ValueError(f"rows must have {n_features} numbers each; got shape {X.shape}")
    if not np.isfinite(X).all():
        raise ValueError("rows must be finite numbers")
    return X


if __name__ == "__main__":
    import uvicorn

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    uvicorn.run(make_app(rc.Predictor(options.model)), port=options.port, access_log=False)
