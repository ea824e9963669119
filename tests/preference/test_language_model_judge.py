"""The example with a language model, with a server that errs, is slow or busy, and mumbles."""

import asyncio
import hashlib
import importlib.util
import json
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from rankcore.metrics import ndcg_score
from rankcore.preference import Journal, call_plan

tenacity = pytest.importorskip("tenacity")
pytest.importorskip("httpx")
EXAMPLE = Path(__file__).parents[2] / "examples" / "judge_with_a_language_model.py"
if not EXAMPLE.exists():
    pytest.skip("the examples are not here", allow_module_level=True)
spec = importlib.util.spec_from_file_location("judge_with_a_language_model", EXAMPLE)
example = importlib.util.module_from_spec(spec)
spec.loader.exec_module(example)

RELEVANCE = np.random.default_rng(5).permutation([3] * 5 + [2] * 5 + [1] * 8 + [0] * 12)
DOCUMENTS = [f"document {k} with {k * k} words" for k in range(len(RELEVANCE))]
PROMPT = re.compile(r"Query: (.*)\n\nDocument A: (.*)\n\nDocument B: (.*)\n\nWhich")


def share(*what):
    """Return a number from 0 to 1 that depends on the arguments alone."""
    digest = hashlib.sha256(repr(what).encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            server.requests += 1
            server.now += 1
            server.most = max(server.most, server.now)
            number = server.requests
        time.sleep(0.02 * share("delay", number))
        with server.lock:
            server.now -= 1
            self.reply(body)

    def reply(self, body):
        server = self.server
        assert self.path == "/v1/chat/completions"
        assert self.headers["Authorization"] == "Bearer secret"
        query, a, b = PROMPT.match(body["messages"][0]["content"]).groups()
        # By pair and attempt, not by the order of arrival: a pair is never unlucky for ever.
        server.attempts[a, b] += 1
        attempt = (a, b, server.attempts[a, b])
        if share("429", *attempt) < 0.1:
            self.send(429, {"error": "slow down"}, {"Retry-After": "0.01"})
            server.refused += 1
            return
        assert query == "which is relevant"
        server.pairs.append((a, b))
        u, v = (RELEVANCE[DOCUMENTS.index(text)] for text in (a, b))
        if share("mumble", *attempt) < 0.1:
            text = "Both have their merits"
            server.mumbled += 1
        elif u == v:
            text = "C"
        else:
            wrong = share("noise", *sorted((a, b))) < 0.1
            first = share("position", a, b) < 0.2  # and sometimes just the first
            text = "A." if ((u > v) ^ wrong) or first else " b"
        usage = {"prompt_tokens": len(body["messages"][0]["content"]), "completion_tokens": 2}
        server.read += usage["prompt_tokens"]
        server.written += 2
        answer = {"choices": [{"message": {"role": "assistant", "content": text}}]}
        self.send(200, {**answer, "usage": usage}, {})

    def send(self, status, body, headers):
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": len(data)}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        """Say nothing."""


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = False
        server.lock = threading.Lock()
        server.requests = server.now = server.most = server.refused = server.mumbled = 0
        server.read = server.written = 0
        server.pairs, server.attempts = [], Counter()
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def rerank(server, **params):
    url = f"http://127.0.0.1:{server.server_address[1]}/v1/"
    params = {"top_k": 5, "random_state": 0, "concurrency": 8, **params}
    policy = tenacity.Retrying(stop=tenacity.stop_after_attempt(8), wait=tenacity.wait_fixed(0.001))
    params.setdefault("retry", policy)
    return asyncio.run(
        example.rerank(
            "which is relevant", DOCUMENTS, "m", url, key="secret", prices=(2.0, 8.0), **params
        )
    )


def test_example_orders_documents_and_counts_the_cost(server):
    best, ranker, judge = rerank(server)
    assert ranker.complete_
    assert len(best) == 5
    scores = np.empty(len(DOCUMENTS))
    scores[ranker.order_] = np.arange(len(DOCUMENTS), 0, -1)
    assert ndcg_score(RELEVANCE, scores, k=5) > 0.9
    assert server.refused > 10
    assert server.mumbled > 10
    assert ranker.n_calls_ == server.requests
    answered = server.requests - server.refused - server.mumbled
    assert answered <= 2 * call_plan(len(DOCUMENTS), 5)["halving"].calls
    # Each pair in both orders, each of which was answered once.
    assert {(b, a) for a, b in server.pairs} == set(server.pairs)
    assert len(set(server.pairs)) == answered == 2 * len({frozenset(p) for p in server.pairs})
    assert 1 < server.most <= 8
    assert (judge.tokens_read, judge.tokens_written) == (server.read, server.written)
    assert judge.cost == pytest.approx((2 * server.read + 8 * server.written) / 1e6)


def test_example_continues_from_its_journal(server, tmp_path):
    journal = Journal(tmp_path / "answers.sqlite", run="which is relevant", judge="m")
    _, ranker, _ = rerank(server, journal=journal, max_calls=150)
    assert server.requests == ranker.n_calls_ == 150
    assert not ranker.complete_
    lost = server.refused + server.mumbled
    assert lost > 10
    best, ranker, _ = rerank(server, journal=journal)
    assert ranker.complete_
    assert ranker.n_reused_ == 150 - lost
    assert ranker.n_calls_ == server.requests
    requests = server.requests
    again, _, judge = rerank(server, journal=journal)
    assert again == best
    assert (server.requests, judge.tokens_read, judge.cost) == (requests, 0, 0.0)


def test_example_runs_from_the_command_line(server, tmp_path):
    file = tmp_path / "documents.txt"
    file.write_text("\n".join(DOCUMENTS[:12]), encoding="utf-8")
    url = f"http://127.0.0.1:{server.server_address[1]}/v1/"
    command = [sys.executable, str(EXAMPLE), "which is relevant", str(file), "--model", "m"]
    command += ["--url", url, "--top-k", "3", "--prices", "1", "2"]
    done = subprocess.run(
        command, env={"OPENAI_API_KEY": "secret"}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["1", "2", "3"]
    most_relevant = RELEVANCE[:12] == RELEVANCE[:12].max()
    assert lines[0].endswith(tuple(np.array(DOCUMENTS[:12])[most_relevant]))
    assert f"{server.requests} calls, {server.read} tokens read" in done.stderr
    assert done.stderr.rstrip().endswith("complete")


def test_wait_of_a_busy_endpoint_is_as_long_as_it_asks():
    waits = []

    @tenacity.Retrying(
        wait=example.wait, sleep=waits.append, stop=tenacity.stop_after_attempt(3)
    ).wraps
    def call():
        raise example.BusyError(429, 7.5)

    with pytest.raises(tenacity.RetryError):
        call()
    assert waits == [7.5, 7.5]
