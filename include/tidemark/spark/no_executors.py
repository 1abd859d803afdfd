"""Why a run gets no executors, and what to do, in a line: from what is known of the cluster."""

from __future__ import annotations

from collections.abc import Mapping

from tidemark.resident.standalone import MasterState

DEFAULT_HEAP = "1g"
_UNITS = {"k": 1 / 1024, "m": 1, "g": 1024, "t": 1024 * 1024}


def advice(master: str, conf: Mapping[str, str], state: MasterState | None, why: str, application: str) -> str:
    """The line. `state` is that of a standalone master, None of others and of one that did not answer: `why`.

    >>> from tidemark.resident.standalone import Application, Worker
    >>> state = MasterState((Worker(2, 0, 2048, 0),), (Application("app-0", "tidemark resident", 2),))
    >>> conf = {"spark.cores.max": "1", "spark.executor.cores": "1", "spark.executor.memory": "1024m"}
    >>> print(advice("spark://m:7077", conf, state, "", "app-1"))
    spark://m:7077 has 0 of 2 cores and 0 of 2,048 MiB free on 1 workers. This run (app-1) asks for up to 1 cores, \
by executors of 1 cores and 1,024 MiB. The others are used by tidemark resident (2). The run goes on when one of these \
ends; or end one, add workers, or give each a smaller share (spark.cores.max).
    """
    cores, heap = int(conf.get("spark.executor.cores", "1")), mebibytes(conf.get("spark.executor.memory", DEFAULT_HEAP))
    most = conf.get("spark.cores.max")
    wanted = f"up to {most} cores" if most else "all cores"
    asks = f"This run ({application}) asks for {wanted}, by executors of {cores} cores and {heap:,} MiB."
    if state is None:
        known = f"{master} does not say what is free ({why})." if why else f"{master} has sent none."
        return f"{known} {asks} Look at the cluster's own page or queue: is there room, and is the master alive?"
    if not state.workers:
        return f"{master} has no worker alive. {asks} Start a worker."
    total, free = (sum(getattr(worker, name) for worker in state.workers) for name in ("memory", "free_memory"))
    has = (
        f"{master} has {state.free_cores} of {state.cores} cores and {free:,} of {total:,} MiB free"
        f" on {len(state.workers)} workers."
    )
    return f"{has} {asks} {_what_to_do(state, cores, heap, application)}"


def _what_to_do(state: MasterState, cores: int, heap: int, application: str) -> str:
    own = sum(app.cores for app in state.applications if app.id == application)
    if own:
        return (
            f"It has {own} of the cores: its executors are starting, or cannot reach the driver. See their logs on the"
            " worker, and that they reach the driver (spark.driver.host)."
        )
    if not any(worker.cores >= cores and worker.memory >= heap for worker in state.workers):
        return (
            "No worker is as large as one of its executors: lower spark.executor.memory or spark.executor.cores, or"
            " start larger workers."
        )
    if any(worker.free_cores >= cores and worker.free_memory >= heap for worker in state.workers):
        return (
            "There is room for one: either it is starting, or executors end at once. See their logs on the worker, and"
            " that they reach the driver (spark.driver.host)."
        )
    holders = ", ".join(f"{app.name} ({app.cores})" for app in state.applications if app.cores)
    return (
        f"The others are used by {holders or 'nobody'}. The run goes on when one of these ends; or end one, add"
        " workers, or give each a smaller share (spark.cores.max)."
    )


def mebibytes(text: str) -> int:
    """A size as Spark writes it, which counts MiB where it names no unit.

    >>> mebibytes("1g"), mebibytes("512m"), mebibytes("512"), mebibytes("2gb")
    (1024, 512, 512, 2048)
    """
    text = text.strip().lower().removesuffix("b")
    unit = _UNITS.get(text[-1:])
    return int(float(text[:-1]) * unit) if unit is not None else int(text)
