"""Shards on Ray Data.

>>> import ray
>>> from pyterrane import shards
>>> import pyterrane.ray
>>> shards.plan("dem.tif", "on_ray.json", shards=2, tile=16)
2
>>> _ = ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, ignore_reinit_error=True)
>>> report = pyterrane.ray.encode("on_ray.json", "on_ray.trn")
>>> ray.shutdown()
"""

from __future__ import annotations

import os
from typing import Any

import ray
import ray.data

from pyterrane import shards
from pyterrane._convert import Report
from pyterrane._terrain import Path
from pyterrane._workers import Work, attempt, encode_shard, give_up


def encode(
    plan: Path,
    out: Path | None = None,
    *,
    folder: Path | None = None,
    work: Work = encode_shard,
    retries: int = 3,
    num_cpus: float = 1,
    concurrency: int | None = None,
    overwrite: bool = False,
) -> Report | None:
    """Encodes all shards of a plan on the workers of Ray, and merges them where ``out`` is given.

    The plan, its rasters and ``folder`` must be there for every worker under the same names; where they are not,
    ``work(plan, shard, folder)`` may fetch and bring them around :func:`pyterrane.shards.encode`. A shard that fails is
    tried again up to ``retries`` times, on whatever worker is free; one whose worker is killed is repeated by Ray. Shards that are
    there already are not made again, so the same call goes on where another was stopped.
    """
    source, target = os.path.abspath(plan), os.path.abspath(shards.folder_of(plan, folder))
    left = list(range(shards.count(source)))
    failures: dict[int, str] = {}
    arguments: dict[str, Any] = {"num_cpus": num_cpus}
    if concurrency is not None:
        arguments["compute"] = ray.data.TaskPoolStrategy(size=concurrency)

    def task(row: dict[str, Any]) -> dict[str, Any]:
        number = int(row["shard"])
        return {"shard": number, "error": attempt(work, source, number, target) or ""}

    for _ in range(retries + 1):
        rows = ray.data.from_items(
            [{"shard": number} for number in left], override_num_blocks=len(left)
        )
        done = rows.map(task, **arguments).take_all()
        failures = {int(row["shard"]): str(row["error"]) for row in done if row["error"]}
        left = sorted(failures)
        if not left:
            break
    give_up(failures.items(), retries + 1)
    if out is None:
        return None
    return shards.merge(source, out, target, overwrite=overwrite)
