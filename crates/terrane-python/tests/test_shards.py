"""Shards from Python, on Ray and on Dask: with workers that are killed and shards that fail."""

import os
import signal
from pathlib import Path

import pytest

import pyterrane
from pyterrane import shards


@pytest.fixture(scope="module")
def job(dem, tmp_path_factory):
    """A plan of seven shards and the bytes of the whole file."""
    folder = tmp_path_factory.mktemp("job")
    plan = folder / "plan.json"
    assert shards.plan(dem, plan, shards=7, tile=16, max_error=0.05) == shards.count(plan) == 7
    pyterrane.encode(dem, folder / "whole.trn", tile=16, max_error=0.05)
    return str(plan), (folder / "whole.trn").read_bytes()


def once(folder: str, name: str, times: int = 1) -> bool:
    """Whether something happens for the first times, in whatever process."""
    for number in range(times):
        try:
            os.close(os.open(f"{folder}/{name}.{number}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        return True
    return False


def rough(plan: str, shard: int, folder: str):
    """The worker of shard 2 is killed once, shard 4 fails twice."""
    os.makedirs(folder, exist_ok=True)
    if shard == 2 and once(folder, "killed"):
        os.kill(os.getpid(), signal.SIGKILL)
    if shard == 4 and once(folder, "failed", 2):
        raise OSError("the disk is full for a moment")
    return shards.encode(plan, shard, folder)


def hopeless(plan: str, shard: int, folder: str):
    """Shard 5 always fails."""
    if shard == 5:
        raise OSError("no such luck")
    return shards.encode(plan, shard, folder)


def test_shards_merge_to_the_whole_file(job, tmp_path):
    plan, whole = job
    with pytest.raises(FileNotFoundError, match="shard 0 of 7 is missing"):
        shards.merge(plan, tmp_path / "a.trn", tmp_path)
    for number in reversed(range(7)):
        made = shards.encode(plan, number, tmp_path)
        assert not made.was_there and made.bytes == os.path.getsize(made.path)
    assert shards.encode(plan, 3, tmp_path).was_there
    report = shards.merge(plan, tmp_path / "a.trn", tmp_path)
    assert report.max_error_m <= 0.05 and Path(report.path).read_bytes() == whole
    with pytest.raises(IndexError, match="there is no shard 7"):
        shards.encode(plan, 7, tmp_path)


def test_what_is_no_plan_is_said(tmp_path):
    (tmp_path / "plan.json").write_text("{}")
    with pytest.raises(pyterrane.TerraneError, match="plan.json is not a plan of shards"):
        shards.count(tmp_path / "plan.json")
    with pytest.raises(FileNotFoundError, match="cannot be read"):
        shards.count(tmp_path / "none.json")


def test_rates_of_whole_files_are_refused(dem, tmp_path):
    with pytest.raises(ValueError, match="add `per_tile`"):
        shards.plan(dem, tmp_path / "plan.json", bpp=1.0)


@pytest.fixture(scope="module")
def two_workers_of_ray():
    ray = pytest.importorskip("ray")
    # Workers must find this file, where their work is.
    environment = {"env_vars": {"PYTHONPATH": str(Path(__file__).parent)}}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env=environment)
    yield
    ray.shutdown()


def test_ray_gets_over_a_killed_worker_and_a_shard_that_fails_twice(job, tmp_path, two_workers_of_ray):
    import pyterrane.ray

    plan, whole = job
    folder = tmp_path / "shards"
    report = pyterrane.ray.encode(plan, tmp_path / "a.trn", folder=folder, work=rough)
    assert Path(report.path).read_bytes() == whole
    assert {name for name in os.listdir(folder) if "." in name and not name.endswith(".trs")} >= {
        "killed.0", "failed.0", "failed.1"}
    # Nothing is made again.
    times = {name: os.stat(folder / name).st_mtime_ns for name in os.listdir(folder)}
    assert pyterrane.ray.encode(plan, folder=folder) is None
    assert times == {name: os.stat(folder / name).st_mtime_ns for name in os.listdir(folder)}


def test_ray_says_which_shard_it_could_not_do(job, tmp_path, two_workers_of_ray):
    import pyterrane.ray

    with pytest.raises(RuntimeError, match="shard 5 could not be encoded in 2 attempts: OSError: no such luck"):
        pyterrane.ray.encode(job[0], tmp_path / "a.trn", folder=tmp_path, work=hopeless, retries=1)
    assert not (tmp_path / "a.trn").exists()
    assert (tmp_path / "shard-000006.trs").exists(), "the others are done"


@pytest.fixture(scope="module")
def two_workers_of_dask():
    distributed = pytest.importorskip("distributed")
    with distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        yield client


def test_dask_gets_over_a_killed_worker_and_a_shard_that_fails_twice(job, tmp_path, two_workers_of_dask):
    import pyterrane.dask

    plan, whole = job
    folder = tmp_path / "shards"
    report = pyterrane.dask.encode(plan, tmp_path / "a.trn", client=two_workers_of_dask, folder=folder, work=rough)
    assert Path(report.path).read_bytes() == whole
    assert (folder / "killed.0").exists() and (folder / "failed.1").exists()


def test_dask_says_which_shard_it_could_not_do(job, tmp_path, two_workers_of_dask):
    import pyterrane.dask

    with pytest.raises(RuntimeError, match="shard 5 could not be encoded in 2 attempts: OSError: no such luck"):
        pyterrane.dask.encode(job[0], tmp_path / "a.trn", client=two_workers_of_dask, folder=tmp_path, work=hopeless,
                            retries=1)
