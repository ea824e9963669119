"""A ranker behind HTTP: time per request at 1,000 requests per second, and processor time.

    python -m benchmarks service

Starts examples/services/rank_service.py on one core, if the system can pin it, and sends
requests of 20 documents with 136 features (20 kB) over 50 connections, each at its time whether or
not others are answered: a slow answer counts with all the time that later ones wait. What cannot be
answered in twice the time is left. Needs fastapi, uvicorn[standard] and prometheus-client.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

import numpy as np

import rankcore as rc
from benchmarks.measure import sized

ROOT = Path(__file__).parents[1]
RATE, SECONDS, CONNECTIONS = sized((1_000, 10, 50), (50, 1, 5))
DOCUMENTS = 20


def request(X):
    """Bytes of one request."""
    body = json.dumps({"rows": X.round(4).tolist()}).encode()
    head = f"POST /rank HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def one(port, message, times, late):
    """Send a message at each of these times; append how long each answer took since then."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for due in times:
        if time.perf_counter() > times[0] + 2 * SECONDS:
            break
        await asyncio.sleep(max(0, due - time.perf_counter()))
        writer.write(message)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        length = next(part for part in head.lower().split(b"\r\n") if b"content-length" in part)
        await reader.readexactly(int(length.split(b":")[1]))
        late.append(time.perf_counter() - due)
    writer.close()


async def load(port, message, seconds):
    """Return the times of all answers at the rate, in seconds."""
    late, start = [], time.perf_counter() + 0.5
    n, step = int(RATE * seconds), 1 / RATE
    times = [
        [start + i * step for i in range(first, n, CONNECTIONS)] for first in range(CONNECTIONS)
    ]
    await asyncio.gather(*(one(port, message, part, late) for part in times))
    return np.array(late), time.perf_counter() - start


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port):
    for _ in range(600):
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.1)
    raise TimeoutError("the service did not start")


def processor_time(pid):
    """Seconds of processor time of a process, on Linux."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(repeat: int) -> None:
    for name in ("fastapi", "prometheus_client", "uvicorn"):
        import_module(name)  # which the service needs, and would not say
    X, relevance, qid = rc.datasets.make_letor(50, DOCUMENTS, random_state=0)
    message = request(X[:DOCUMENTS].astype(float))
    with tempfile.TemporaryDirectory() as folder:
        model, port = f"{folder}/ranker.rank", free_port()
        rc.save(rc.RankBoost(100).fit(X, relevance, qid=qid), model)
        command = [ROOT / "examples/services/rank_service.py", model, "--port", str(port)]
        server = subprocess.Popen([sys.executable, *command], stderr=subprocess.DEVNULL)
        try:
            if hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(server.pid, {0})
            wait_for(port)
            asyncio.run(load(port, message, 1))
            print(f"{'answers/s':>10} {'p50':>7} {'p99':>7} {'most':>7} ms; server, ms per request")
            for _ in range(min(repeat, 3)):
                before = processor_time(server.pid)
                late, took = asyncio.run(load(port, message, SECONDS))
                used = (processor_time(server.pid) - before) / len(late)
                figures = np.percentile(late, [50, 99, 100]) * 1e3
                print(
                    f"{len(late) / took:10.0f}",
                    *(f"{x:7.1f}" for x in figures),
                    f"{used * 1e3:11.2f}",
                )
        finally:
            server.terminate()
            server.wait()
