"""Shards on Dask.

>>> from distributed import Client
>>> from pyterrane import shards
>>> import pyterrane.dask
>>> shards.plan("dem.tif", "on_dask.json", shards=2, tile=16)
2
>>> with Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as client:
...     report = pyterrane.dask.encode("on_dask.json", "on_dask.trn", client=client)
"""

from __future__ import annotations

import os

from distributed import Client, as_completed, get_client

from pyterrane import shards
from pyterrane._convert import Report
from pyterrane._terrain import Path
from pyterrane._workers import Work, encode_shard, give_up


def encode(
    plan: Path,
    out: Path | None = None,
    *,
    client: Client | None = None,
    folder: Path | None = None,
    work: Work = encode_shard,
    retries: int = 3,
    overwrite: bool = False,
) -> Report | None:
    """Encodes all shards of a plan on the workers of Dask, and merges them where ``out`` is given.

    ``client`` is the one at hand without it. The plan, its rasters and ``folder`` must be there for every worker under the same
    names; where they are not, ``work(plan, shard, folder)`` may fetch and bring them around
    :func:`pyterrane.shards.encode`. A shard that fails is tried again up to ``retries`` times; one whose worker is killed is repeated
    by Dask on another. Shards that are there already are not made again.
    """
    client = get_client() if client is None else client
    source, target = os.path.abspath(plan), os.path.abspath(shards.folder_of(plan, folder))
    futures = {
        client.submit(work, source, number, target, retries=retries, pure=False): number
        for number in range(shards.count(source))
    }
    failures = {}
    for future in as_completed(futures):  # type: ignore[no-untyped-call]
        if future.status != "finished":
            error = future.exception()
            failures[futures[future]] = f"{type(error).__name__}: {error}"
    give_up(failures.items(), retries + 1)
    if out is None:
        return None
    return shards.merge(source, out, target, overwrite=overwrite)
