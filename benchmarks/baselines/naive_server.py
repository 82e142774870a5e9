"""The service that one writes in ten minutes: an image a request, scored right where it arrives, no batching.

    python benchmarks/baselines/naive_server.py labels.txt

It prints its address. The library is the same, and an answer holds the same; the work is done within the coroutine.
"""

from __future__ import annotations

import socket
import sys

import uvicorn
from fastapi import FastAPI, UploadFile

import outword
from outword.words.labels import read_labels

app = FastAPI()


@app.post("/score")
async def score(image: UploadFile) -> dict:
    """Verdict, score, labels and words of one image."""
    found = app.state.detector.explain(await image.read(), top=3)
    return {"verdict": found.verdict, "score": found.score, "labels": found.labels, "words": found.words}


def main() -> None:
    """Fit a detector of the labels in a file, and serve it."""
    app.state.detector = outword.fit(read_labels(sys.argv[1]))
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # asyncio: no TCP_NODELAY without it
    bound.bind(("127.0.0.1", 0))
    bound.listen()
    print(f"http://127.0.0.1:{bound.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[bound])


if __name__ == "__main__":
    main()
