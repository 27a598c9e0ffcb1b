"""Processes that create the same names at the same time, in one store: each name must be one's, and hold its bytes."""

from __future__ import annotations

import multiprocessing
from contextlib import suppress
from typing import Any

from twopc.storage.open import open_store


def create_each(where: str, names: list[str], start: Any, won: Any) -> None:
    store = open_store(where)
    token = store.creator()
    start.wait(120)
    for name in names:
        with suppress(FileExistsError):
            store.create_once(name, token.encode())
            won.put((name, token))


def race(where: str, creators: int, rounds: int) -> None:
    store, names = open_store(where), [f"chk-{number}/metadata.json" for number in range(1, rounds + 1)]
    store.establish()
    context = multiprocessing.get_context("spawn")
    start, won = context.Barrier(creators), context.Queue()
    processes = [context.Process(target=create_each, args=(where, names, start, won)) for _ in range(creators)]
    for process in processes:
        process.start()
    winners = [won.get(timeout=120) for _ in names]
    for process in processes:
        process.join(120)
    assert won.empty()
    assert sorted(winners) == sorted((name, store.get(name).decode()) for name in names)
