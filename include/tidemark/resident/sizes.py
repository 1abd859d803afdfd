"""How much of a standalone cluster one application takes, where nobody has said (docs/decisions/0060).

A standalone master gives all free cores to whoever asks first, and leaves them there until that application ends. A
resident Spark would so keep every other run waiting. So an application asks for half of the cluster, and executors are
small enough for two applications on each worker.

>>> from tidemark.resident.standalone import Worker
>>> state = MasterState((Worker(8, 8, 16384, 16384), Worker(8, 8, 16384, 16384)))
>>> for name, value in default_sizes({"spark.master": "spark://m:7077"}, state).items():
...     print(f"{name}={value}")
spark.executor.cores=4
spark.cores.max=8
spark.executor.memory=1024m
spark.default.parallelism=8
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from tidemark.errors import InvalidUsage
from tidemark.resident.standalone import MasterState, NoAnswer, ask, is_standalone

SHARE = "spark.tidemark.share"
"""The setting that says which share of a standalone cluster's cores one application asks for."""
DEFAULT_SHARE = 0.5
MOST_CORES = 4
"""Cores of an executor at most."""
HEAP_MIB = 1024
LEAST_HEAP_MIB = 512
"""Spark refuses an executor with less than 450 MiB."""
ON_DEMAND = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.timeout": "60s",
}
"""Executors come when there are tasks and go when they were idle for a minute (Spark's default). A standalone cluster
has no shuffle service as a rule, so that those with the files of a shuffle stay as long, and no longer."""


def default_sizes(chosen: Mapping[str, str], state: MasterState, *, resident: bool = False) -> dict[str, str]:
    """Settings for an application on the cluster of `state`, without those that are `chosen`. A `resident` one gives
    executors back while it is idle. Empty for a cluster without workers.

    Raises InvalidUsage for a share that is not above 0 and at most 1.
    """
    share = _share(chosen)
    if not state.workers:
        return {}
    most = int(chosen.get("spark.cores.max") or max(1, int(state.cores * share)))
    per_executor = int(chosen.get("spark.executor.cores") or min(most, _cores_of_executor(state)))
    cores = max(per_executor, most // per_executor * per_executor)
    added = {"spark.executor.cores": str(per_executor)}
    if "spark.executor.instances" not in chosen:
        added["spark.cores.max"] = str(cores)
    added["spark.executor.memory"] = f"{_heap(state, per_executor)}m"
    added["spark.default.parallelism"] = str(max(2, cores))
    if resident and "spark.dynamicAllocation.enabled" not in chosen:
        added |= ON_DEMAND
    return {name: value for name, value in added.items() if name not in chosen}


def sizes_for(jvm: Any, chosen: Mapping[str, str], *, resident: bool = False) -> dict[str, str]:
    """Ask a standalone master for its workers, and choose `default_sizes` by them.

    Nothing is set for other masters, nor for one that does not answer twice, which is said on stderr: a master that is
    busy for a moment must not give all its cores to one application.
    """
    master = chosen.get("spark.master", "")
    if not is_standalone(master):
        return {}
    try:
        state = _state(jvm, master)
    except NoAnswer as error:
        print(
            f"{master} does not say what workers it has ({error}), so this run asks for all cores that are free, unless"
            " spark.cores.max is set: see that the master runs, and that its address and its page can be reached",
            file=sys.stderr,
            flush=True,
        )
        return {}
    return default_sizes(chosen, state, resident=resident)


def _state(jvm: Any, master: str) -> MasterState:
    try:
        return ask(jvm, master)
    except NoAnswer:
        return ask(jvm, master)


def _share(chosen: Mapping[str, str]) -> float:
    text = chosen.get(SHARE) or str(DEFAULT_SHARE)
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise InvalidUsage(f"{SHARE} is {text!r}; write a number above 0 and at most 1, such as 0.5")
    return share


def _cores_of_executor(state: MasterState) -> int:
    """At most half of the smallest worker, so that two applications find room on each."""
    return max(1, min(MOST_CORES, min(worker.cores for worker in state.workers) // 2))


def _heap(state: MasterState, cores: int) -> int:
    """MiB of an executor's heap: as much of a worker's memory as of its cores, at most HEAP_MIB."""
    of_worker = min(worker.memory * cores // worker.cores for worker in state.workers)
    return max(LEAST_HEAP_MIB, min(HEAP_MIB, of_worker))
