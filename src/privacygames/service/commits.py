"""Group commit: the releases that wait are drawn and committed in one transaction of the store."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from time import monotonic, time
from typing import Any

from privacygames.errors import InvalidFile, PrivacyGamesError, StaleFleet, StoreUnavailable, UnknownLabel
from privacygames.releases import LedgerStore, Release
from privacygames.service.accounts import Accounts

MAX_BATCH = 64
"""Releases in one transaction: enough that a write to the disk is shared, few enough that none waits long."""

MAX_WAITING = 2000
"""Releases that may wait; more are refused, with the advice to try again."""


@dataclass(frozen=True, eq=False)
class ReleaseRequest:
    """A release that is asked for.

    Attributes:
        person: whose.
        secret: the true value; it is never printed.
        key: the caller's name for the release.
        clock: whether it happens at this machine's time; otherwise releases are counted.
        result: the release, once it is committed.
    """

    person: str
    secret: Any = field(repr=False)
    key: str | None
    clock: bool
    result: "Future[Release[Any]]" = field(default_factory=Future)


class GroupCommit:
    """A thread that takes the releases which wait, draws their outputs and commits them together.

    An output is handed out only after the commit. While one transaction is written to the disk, the next releases
    gather; so batches grow with the load by themselves, and a single release does not wait for others.

    Args:
        accounts: people's sessions.
        store: the store of these sessions.
        observe: called after every batch with the number of its releases and the seconds it took.
        max_batch: releases in one transaction.
    """

    def __init__(
        self,
        accounts: Accounts,
        store: LedgerStore,
        observe: Callable[[int, float], None] = lambda *_: None,
        max_batch: int = MAX_BATCH,
    ) -> None:
        self._accounts, self._store, self._observe, self._max_batch = accounts, store, observe, max_batch
        self._queue: SimpleQueue[ReleaseRequest | None] = SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="group-commit", daemon=True)
        self._thread.start()

    def submit(self, request: ReleaseRequest) -> "Future[Release[Any]]":
        """Let a release wait for the next batch."""
        if self._closed:
            raise StoreUnavailable("the service is stopping: try again")
        if self._queue.qsize() >= MAX_WAITING:
            raise StoreUnavailable(f"{MAX_WAITING} releases are waiting: try again in a while")
        self._queue.put(request)
        return request.result

    def close(self) -> None:
        """Commit what waits, and end the thread."""
        self._closed = True
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            batch: list[ReleaseRequest | None] = [first]
            while len(batch) < self._max_batch and batch[-1] is not None:
                try:
                    batch.append(self._queue.get_nowait())
                except Empty:
                    break
            # who has gone meanwhile is left out; from here on a release can no longer be cancelled
            requests = [each for each in batch if each is not None and each.result.set_running_or_notify_cancel()]
            started = monotonic()
            self._commit(requests)
            self._observe(len(requests), monotonic() - started)
            if batch[-1] is None:
                return

    def _commit(self, requests: list[ReleaseRequest]) -> None:
        """Release a batch in one transaction, and hand out the outputs after it."""
        outcomes: dict[ReleaseRequest, Release[Any] | BaseException] = {}
        try:
            prepared = [request for request in requests if self._prepared(request, outcomes)]
            people = list(dict.fromkeys(request.person for request in prepared))
            if people:
                self._store.create([each for each in people if not self._accounts.has_session(each)])
                keys = [(request.person, request.key) for request in prepared if request.key is not None]
                with self._store.transaction(people, keys):
                    for request in prepared:
                        outcomes[request] = self._released(request)
        except BaseException as error:  # nothing of this batch was committed, or it is not known
            for request in requests:
                if isinstance(outcomes.get(request), Release) or request not in outcomes:
                    outcomes[request] = error
                    self._accounts.forget(request.person)
        finally:
            self._accounts.end_batch()
        for request in requests:
            outcome = outcomes[request]
            if isinstance(outcome, BaseException):
                request.result.set_exception(outcome)
            else:
                request.result.set_result(outcome)

    def _prepared(
        self, request: ReleaseRequest, outcomes: "dict[ReleaseRequest, Release[Any] | BaseException]"
    ) -> bool:
        """Whether the person's mechanism is there; the error is the request's outcome otherwise."""
        try:
            self._accounts.prepare(request.person)
        except Exception as error:  # a damaged record is one person's trouble
            outcomes[request] = error
            return False
        return True

    def _released(self, request: ReleaseRequest) -> Release[Any] | BaseException:
        """The release, drawn but not committed yet; or why there is none."""
        try:
            session = self._accounts.session(request.person)
            return session.release(request.secret, at=time() if request.clock else None, key=request.key)
        except (InvalidFile, UnknownLabel, StaleFleet) as error:  # another ledger than the session's: open it again
            self._accounts.forget(request.person)
            return error
        except PrivacyGamesError as error:
            return error
