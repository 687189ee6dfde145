"""Worker processes behind one address: started, restarted after a crash, and ended once their requests are answered."""

import multiprocessing
import os
import signal
import socket
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

from privacygames.errors import SolveFailed, Status
from privacygames.releases import LedgerStore
from privacygames.service.accounts import CurrentFleet, ServiceSettings
from privacygames.service.http_api import create_service
from privacygames.service.logs import log
from privacygames.service.metrics import Metrics
from privacygames.service.tokens import Tokens
from privacygames.studio import Address, Limits, listener_at, require_safe, server_config

GRACE_SECONDS = 15
"""Seconds that requests have to be answered once the service is told to stop; supervisors wait longer."""

MAX_CRASHES = 20
"""Crashes of workers in a minute after which the service gives up, so that its supervisor notices."""

CRASH_WINDOW_SECONDS = 60.0

LIMITS = Limits(body=2**22, document=2**22, values=200_000, connections=1000)
"""Limits of one worker: the largest request is a prior."""


@dataclass(frozen=True)
class WorkerSettings:
    """What a worker process needs to know.

    Attributes:
        service: what it releases.
        address: what it is called.
        tokens_file: the file of tokens.
        metrics_file: the counters of all workers.
        workers: how many there are.
        log_requests: whether a line is logged for every request.
    """

    service: ServiceSettings
    address: Address
    tokens_file: str | None
    metrics_file: str
    workers: int
    log_requests: bool


def serve_fleet(
    service: ServiceSettings,
    address: Address,
    *,
    token: str | None = None,
    tokens_file: str | None = None,
    workers: int = 1,
    log_requests: bool = False,
    ready: Callable[[Address], None] = lambda _: None,
) -> None:
    """Serve until SIGTERM or Ctrl-C; then answer the requests that have begun, and end.

    Args:
        service: what is released, and within which budgets.
        address: the address to listen on.
        token: a token with every scope.
        tokens_file: the file of tokens with scopes.
        workers: number of processes.
        log_requests: whether a line is logged for every request.
        ready: called with the address (port 0 replaced by the actual one) once the workers are started.

    Raises:
        InvalidProblem: no token where one is needed, a fleet or a store that cannot be opened, or a port in use.
    """
    tokens = Tokens(None if tokens_file is None else Path(tokens_file), token)
    require_safe(address, token, has_tokens=tokens.are_needed)
    service.memo_key()
    CurrentFleet(service.fleet)  # errors that every worker would have are this process's
    LedgerStore(service.store).close()
    with listener_at(address) as listener, tempfile.TemporaryDirectory(prefix="privacygames-") as folder:
        listener.listen(1024)
        metrics = Path(folder) / "metrics"
        metrics.touch(0o600)
        actual = Address(address.host, listener.getsockname()[1], address.names)
        settings = WorkerSettings(service, actual, tokens_file, str(metrics), workers, log_requests)
        Supervisor(settings, listener, token).run(lambda: ready(actual))


class Supervisor:
    """Starts the workers, starts them again after a crash, and passes the signal to stop on to them.

    Args:
        settings: of every worker.
        listener: the socket that all of them accept connections from.
        token: a token with every scope.
    """

    def __init__(self, settings: WorkerSettings, listener: socket.socket, token: str | None) -> None:
        self._settings, self._listener, self._token = settings, listener, token
        self._context = multiprocessing.get_context("spawn")
        self._stop = threading.Event()
        self._crashes: list[float] = []

    def run(self, started: Callable[[], None]) -> None:
        """Run until a signal."""
        from multiprocessing.connection import wait
        from time import monotonic

        wake, waker = socket.socketpair()
        waker.setblocking(False)
        previous = signal.set_wakeup_fd(waker.fileno())
        handlers = {each: signal.signal(each, lambda *_: self._stop.set()) for each in (signal.SIGTERM, signal.SIGINT)}
        workers = {number: self._start(number) for number in range(self._settings.workers)}
        try:
            started()
            while not self._stop.is_set():
                wait([wake, *(each.sentinel for each in workers.values())])
                for number, worker in workers.items():
                    if worker.is_alive() or self._stop.is_set():
                        continue
                    log("worker", state="died", worker=number, code=worker.exitcode)
                    now = monotonic()
                    self._crashes = [each for each in self._crashes if each > now - CRASH_WINDOW_SECONDS] + [now]
                    if len(self._crashes) >= MAX_CRASHES:
                        raise SolveFailed("the workers of the service keep dying", status=Status.WORKERS_DIED)
                    workers[number] = self._start(number)
        finally:
            log("stopping", workers=len(workers))
            self._end(list(workers.values()))
            signal.set_wakeup_fd(previous)
            for each, handler in handlers.items():
                signal.signal(each, handler)
            wake.close()
            waker.close()

    def _start(self, number: int) -> BaseProcess:
        arguments = (self._settings, number, self._listener, self._token, os.getpid())
        worker = self._context.Process(target=run_worker, args=arguments, name=f"worker-{number}")
        worker.start()
        return worker

    def _end(self, workers: list[BaseProcess]) -> None:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.join(GRACE_SECONDS + 5)
            if worker.is_alive():
                log("worker", state="did not end, and was killed")
                worker.kill()
                worker.join()


def run_worker(settings: WorkerSettings, number: int, listener: socket.socket, token: str | None, parent: int) -> None:
    """Serve requests in this process until SIGTERM, or until its parent is gone."""
    import uvicorn

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal; the parent decides
    metrics = Metrics(Path(settings.metrics_file), number, settings.workers)
    tokens = Tokens(None if settings.tokens_file is None else Path(settings.tokens_file), token)
    app = create_service(
        settings.service,
        hosts=settings.address.allowed(),
        tokens=tokens,
        limits=LIMITS,
        metrics=metrics,
        log_requests=settings.log_requests,
    )
    config = server_config(app, LIMITS, keep_alive_seconds=75, grace_seconds=GRACE_SECONDS, lifespan="on")
    server = uvicorn.Server(config)

    def watch_parent() -> None:
        import time

        while os.getppid() == parent:
            time.sleep(1.0)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch_parent, daemon=True).start()
    server.run(sockets=[listener])
    if not server.started:
        raise SystemExit(1)
