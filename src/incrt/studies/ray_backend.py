"""Assignments on Ray: on a cluster that is there, or on one that is started here for the study.

Every node must have incrt installed and see the study's folder under the same path. An assignment whose worker or node
died is started again by the schedule, wherever Ray has room, and goes on from the runs' own checkpoints.
"""

import logging
import signal
import sys
from typing import Any

from incrt.studies.assignments import Assignment, AssignmentResult
from incrt.studies.backend import Ended

try:
    import ray
    from ray.exceptions import RayError, RayTaskError
except ImportError as error:
    raise ValueError(f"--backend ray needs Ray: pip install 'incrt[ray]' ({error})") from None


class RayBackend:
    """All assignments at once; Ray starts each when the cores or the GPU that it needs are free."""

    def __init__(self, address: str | None, device: str, cores: int) -> None:
        self._is_ours = not ray.is_initialized()
        if self._is_ours:
            try:
                ray.init(
                    address=address,
                    include_dashboard=False if address is None else None,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                )
            except (ConnectionError, ValueError, RuntimeError) as error:
                raise ValueError(f"there is no Ray cluster at {address}: {error}") from None
        self.device = self._choose(device)
        gpus, cores = (1, 1) if self.device == "gpu" else (0, cores)
        try:
            _refuse_what_no_node_has(gpus, cores)
        except ValueError:
            self.close()
            raise
        self._remote = ray.remote(max_retries=0, num_gpus=gpus, num_cpus=cores)(_work)
        self._running: dict[Any, Assignment] = {}

    def _choose(self, device: str) -> str:
        if device != "auto":
            return device
        return "gpu" if ray.cluster_resources().get("GPU", 0) >= 1 else "cpu"

    def has_room(self) -> bool:
        return True

    def start(self, assignment: Assignment) -> None:
        self._running[self._remote.remote(assignment.to_json())] = assignment

    def ended(self, timeout: float) -> list[Ended]:
        if not self._running:
            return []
        done, _ = ray.wait(list(self._running), num_returns=1, timeout=timeout)
        return [_end(self._running.pop(each), each) for each in done]

    def stop(self) -> None:
        for each in self._running:
            ray.cancel(each)

    def close(self) -> None:
        if self._is_ours:
            ray.shutdown()


def _refuse_what_no_node_has(gpus: int, cores: int) -> None:
    """Such an assignment would wait for ever."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(node.get("GPU", 0) >= gpus and node.get("CPU", 0) >= cores for node in nodes):
        has = "; ".join(f"{node.get('CPU', 0):g} cores and {node.get('GPU', 0):g} GPUs" for node in nodes)
        raise ValueError(f"a worker needs {cores} cores and {gpus} GPUs on one node; the nodes have {has}")


def _end(assignment: Assignment, reference: Any) -> Ended:
    try:
        return Ended(assignment, AssignmentResult.from_json(ray.get(reference)), None)
    except RayTaskError as error:  # an error of ours, raised there
        return Ended(assignment, None, f"its worker said: {error.cause!r}")
    except RayError as error:  # the worker or its node is gone, or was asked to stop
        said = str(error).strip().splitlines()
        return Ended(assignment, None, ": ".join([type(error).__name__, *said[:1]]))


def _work(assignment: str) -> str:
    """In a worker of Ray, which asks it to stop by SIGINT; one started from a script's background ignores that."""
    from incrt.studies.worker import work

    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return work(Assignment.from_json(assignment), lambda text: print(text, file=sys.stderr)).to_json()  # noqa: T201
