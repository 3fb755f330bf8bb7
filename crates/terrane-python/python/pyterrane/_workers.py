"""What the adapters of engines share: which shards are left, and what is done with one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pyterrane import shards

#: What a worker does with a plan, the number of a shard and the folder of all.
Work = Callable[[str, int, str], Any]


def encode_shard(plan: str, shard: int, folder: str) -> shards.Shard:
    """The usual work: one shard on one thread."""
    return shards.encode(plan, shard, folder)


def attempt(work: Work, plan: str, shard: int, folder: str) -> str | None:
    """Does the work; returns what went wrong, so that one shard does not end the others."""
    try:
        work(plan, shard, folder)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def give_up(failures: Iterable[tuple[int, str]], attempts: int) -> None:
    """Raises where shards are left over."""
    left = sorted(failures)
    if left:
        number, reason = left[0]
        others = f" ({len(left)} shards in all)" if len(left) > 1 else ""
        raise RuntimeError(
            f"shard {number} could not be encoded in {attempts} attempts{others}: {reason}"
        )
