"""Put documents in order for a query by asking a language model which of two is better.

    python judge_with_a_language_model.py "how do bees find their way" documents.txt --model NAME

documents.txt has one document per line. The endpoint of the model must support OpenAI's chat
completions; its key is read from OPENAI_API_KEY, if set. Each pair is compared in both orders,
since language models favour the first document. Answers are stored in --journal: a run that
continues after a stop, or ranks more documents, does not pay for them again.

Needs ``pip install 'rankcore[judges]' httpx``.
"""

import argparse
import asyncio
import os
import sys
from pathlib import Path

import httpx
import tenacity

from rankcore.preference import Journal, PreferenceRanker, call_plan

PROMPT = """Query: {query}

Document A: {a}

Document B: {b}

Which document answers the query better? Reply with one letter, A or B; with C if neither does."""
DEGREES = {"A": 1.0, "B": 0.0, "C": 0.5}
WAIT_LONGER = tenacity.wait_random_exponential(max=60)


class BusyError(Exception):
    """The endpoint is overloaded, or reports too many requests."""

    def __init__(self, status, retry_after):
        super().__init__(f"status {status}")
        self.retry_after = retry_after  # seconds, or None


class MalformedReplyError(Exception):
    """The reply of the model is not a letter."""


class LanguageModelJudge:
    """An asynchronous preference between documents that counts its cost.

    Parameters
    ----------
    query : str
    model : str
    client : httpx.AsyncClient
        With the base URL of the endpoint, and its key.
    prices : (float, float)
        Of a million tokens that are read, and that are written.
    """

    def __init__(self, query, model, client, prices=(0.0, 0.0)):
        self.query, self.model, self.client, self.prices = query, model, client, prices
        self.tokens_read = self.tokens_written = 0

    async def __call__(self, first, second):
        prompt = PROMPT.format(query=self.query, a=first, b=second)
        response = await self.client.post(
            "chat/completions",
            json={
                "model": self.model,
                "messages": [{"role": "user", "content": prompt}],
                "temperature": 0,
                "max_tokens": 5,
            },
        )
        if response.status_code == 429 or response.status_code >= 500:
            raise BusyError(response.status_code, seconds(response.headers.get("retry-after")))
        response.raise_for_status()
        body = response.json()
        usage = body.get("usage") or {}
        # A reply that cannot be read is paid for, too.
        self.tokens_read += usage.get("prompt_tokens", 0)
        self.tokens_written += usage.get("completion_tokens", 0)
        reply = str(body["choices"][0]["message"]["content"]).strip().strip(".:\"'*").upper()
        if reply not in DEGREES:
            raise MalformedReplyError(reply)
        return DEGREES[reply]

    @property
    def cost(self):
        """Cost of the tokens so far."""
        read, written = self.prices
        return (read * self.tokens_read + written * self.tokens_written) / 1e6


def wait(attempt):
    """Wait as long as the endpoint asks, otherwise longer after each attempt."""
    asked = getattr(attempt.outcome.exception(), "retry_after", None)
    return WAIT_LONGER(attempt) if asked is None else asked


def seconds(retry_after):
    """Read the header; it may also be a date, which is not read."""
    try:
        return float(retry_after)
    except (TypeError, ValueError):
        return None


RETRY = tenacity.Retrying(
    stop=tenacity.stop_after_attempt(6),
    wait=wait,
    retry=tenacity.retry_if_exception_type((BusyError, MalformedReplyError, httpx.TransportError)),
    reraise=True,
)


async def rerank(query, documents, model, url, *, key="", prices=(0.0, 0.0), **params):
    """Return the best documents, the ranker and the judge; ``params`` are the ranker's."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=60.0) as client:
        judge = LanguageModelJudge(query, model, client, prices)
        ranker = PreferenceRanker(judge, both_orders=True, **{"retry": RETRY, **params})
        return await ranker.arank(documents), ranker, judge


def show(progress):
    """One line that is written over."""
    print(
        f"\r{progress.calls} calls, {progress.answered} answered, {progress.running} running, "
        f"{progress.seconds:.0f} s ",
        end="",
        file=sys.stderr,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("query")
    parser.add_argument("documents", type=Path, help="a file with a document in each line")
    parser.add_argument("--model", required=True)
    parser.add_argument("--url", default="https://api.openai.com/v1/")
    parser.add_argument("--top-k", type=int, default=10)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--max-calls", type=int)
    parser.add_argument("--journal", type=Path, help="a file that keeps the answers")
    parser.add_argument("--prices", type=float, nargs=2, default=(0.0, 0.0), metavar="PRICE",
                        help="of a million tokens, read and written")  # fmt: skip
    options = parser.parse_args()
    documents = [line for line in options.documents.read_text("utf-8").splitlines() if line]
    plan = call_plan(len(documents), options.top_k)["halving"]
    print(f"At most {2 * plan.calls} calls in {plan.rounds} rounds.", file=sys.stderr)
    best, ranker, judge = asyncio.run(
        rerank(
            options.query,
            documents,
            options.model,
            options.url,
            key=os.environ.get("OPENAI_API_KEY", ""),
            prices=options.prices,
            top_k=options.top_k,
            concurrency=options.concurrency,
            max_calls=options.max_calls,
            journal=options.journal and Journal(options.journal, options.query, options.model),
            progress=show,
        )
    )
    print(file=sys.stderr)
    places = ranker.ratings_.place_interval()
    for place, document in enumerate(best):
        low, high = places[ranker.order_[place]]
        print(f"{place + 1:3} ({low}-{high})  {document}")
    end = "complete" if ranker.complete_ else "out of calls"
    print(
        f"{ranker.n_calls_} calls, {judge.tokens_read} tokens read, "
        f"{judge.tokens_written} written, cost {judge.cost:.4f}; {end}",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
