"""The one thread pool, for kernels that release the GIL.

The number of threads must not change results. So callers cut their work into chunks whose bounds depend on the data
alone, never on `n_threads`, write each chunk's result to a place of its own, and add the results up in the order in
which `run` returns them. Then 1 and 8 threads give the same bits.

Why not `numba.prange`: its reductions change with the number of threads, OpenMP kills a forked
child, and the workqueue layer aborts when two user threads enter it. Why not
`concurrent.futures`: it deadlocks in a forked child, and `docs/design-notes.md` has its costs.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, TypeVar

__all__ = ["limited", "n_threads", "run"]

T = TypeVar("T")

_VARIABLE = "RANKHINGE_NUM_THREADS"
_own = threading.local()


@contextmanager
def limited(number: int) -> Iterator[None]:
    """Let calls of this thread use this many threads, whatever the environment says. Other threads are not affected."""
    before = getattr(_own, "number", None)
    _own.number = number
    try:
        yield
    finally:
        _own.number = before


def n_threads() -> int:
    """Return how many threads `run` may use, the calling one included.

    The environment variable ``RANKHINGE_NUM_THREADS`` decides if it is set, else the number of CPUs that this process
    may run on, or ``OMP_NUM_THREADS`` if that is less: so joblib tells its workers that they share the CPUs. All are
    read at every call: a change takes effect at once. Within `limited` the number given there decides.

    Returns
    -------
    int
        At least 1.

    Raises
    ------
    ValueError
        If the variable holds anything but a positive integer.
    """
    own: int | None = getattr(_own, "number", None)
    if own is not None:
        return own
    text = os.environ.get(_VARIABLE, "").strip()
    if text:
        if not (text.isascii() and text.isdigit() and int(text) > 0):
            raise ValueError(f"{_VARIABLE} must be a positive integer, got {text!r}")
        return int(text)
    n_cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # One number a level of nesting, of which the first counts.
    limit = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return min(n_cpus, int(limit)) if limit.isascii() and limit.isdigit() and int(limit) > 0 else n_cpus


class _Job:
    """The tasks of one call of `run`, and the threads that work on them.

    Ctrl-C interrupts only the calling thread, but between any two bytecodes. Therefore nothing that a helper needs, and
    no wait, depends on the caller having reached a certain line: the caller *closes* the job, which can be repeated
    until it succeeds, and from then on no helper enters, and those inside have left.
    """

    def __init__(self, tasks: Sequence[Callable[[], Any]]) -> None:
        self.tasks = tasks
        self.results: list[Any] = [None] * len(tasks)
        self.errors: dict[int, BaseException] = {}
        # `next` of a count is a single C call: two threads never get the same index.
        self._indices = itertools.count()
        self._stopped = False
        self._door = threading.Lock()
        self._closed = False
        self._n_inside = 0
        self._last_one_left = threading.Lock()
        self._last_one_left.acquire()

    def work(self) -> None:
        """Run tasks until none is left; an `Exception` is kept, and stops no other task."""
        tasks, n_tasks = self.tasks, len(self.tasks)
        while not self._stopped:
            index = next(self._indices)
            if index >= n_tasks:
                return
            try:
                self.results[index] = tasks[index]()
            except Exception as error:
                self.errors[index] = error
            except BaseException as error:
                self.errors[index] = error
                self._stopped = True

    def stop(self) -> None:
        """Let no further task begin."""
        self._stopped = True

    def help(self) -> None:
        """Work as a helper, unless the caller has closed the job already."""
        with self._door:
            if self._closed:
                return
            self._n_inside += 1
        try:
            self.work()
        finally:
            with self._door:
                self._n_inside -= 1
                if self._closed and self._n_inside == 0:
                    self._last_one_left.release()

    def close(self) -> None:
        """Return once no helper is inside and none can enter; interrupts wait until then."""
        interrupt = None
        while True:
            try:
                with self._door:
                    self._closed = True
                    busy = self._n_inside > 0
                if busy:
                    self._last_one_left.acquire()
                break
            except BaseException as error:
                # Leaving now would let a helper write into arrays that the caller has given up.
                interrupt = error
                self._stopped = True
        if interrupt is not None:
            raise interrupt

    def outcome(self) -> list[Any]:
        """Return the results, or raise the first error; an interrupt comes before any other."""
        if not self.errors:
            return self.results
        # Emptied first: error, traceback, frame and job would keep each other's arrays alive.
        errors, self.errors = self.errors, {}
        first = min((isinstance(error, Exception), index) for index, error in errors.items())[1]
        try:
            raise errors[first]
        finally:
            del errors


class _Pool:
    """Daemon threads that wait for jobs. Their number grows on demand."""

    def __init__(self) -> None:
        self._forget_threads()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget_threads)

    def _forget_threads(self) -> None:
        # A forked child inherits the objects but not the threads, and locks in any state.
        self._queue: SimpleQueue[_Job] = SimpleQueue()
        self._n_workers = 0
        self._growing = threading.Lock()
        self._local = threading.local()

    def _grow(self, n_workers: int) -> int:
        """Start threads up to `n_workers`, and return how many of these there are."""
        with self._growing:
            while self._n_workers < n_workers:
                worker = threading.Thread(
                    target=self._serve,
                    args=(self._queue,),
                    name=f"rankhinge-{self._n_workers}",
                    daemon=True,
                )
                try:
                    worker.start()
                except RuntimeError:
                    # The system allows no more threads, or the interpreter is shutting down.
                    break
                self._n_workers += 1
            return min(self._n_workers, n_workers)

    def _serve(self, queue: SimpleQueue[_Job]) -> None:
        self._local.busy = True
        while True:
            job = queue.get()
            job.help()
            # While it waits for the next job, a thread must not keep the arrays of the last alive.
            del job

    def run(self, tasks: Sequence[Callable[[], Any]]) -> list[Any]:
        job = _Job(tasks)
        local = self._local
        n_helpers = min(n_threads(), len(tasks)) - 1
        if n_helpers < 1 or getattr(local, "busy", False):
            job.work()
            return job.outcome()
        if n_helpers > self._n_workers:
            n_helpers = self._grow(n_helpers)
        try:
            local.busy = True
            for _ in range(n_helpers):
                self._queue.put(job)
            job.work()
        except BaseException:
            job.stop()
            raise
        finally:
            local.busy = False
            try:
                job.close()
            except BaseException:
                # An interrupt can also fall between the call of `close` and its first line.
                job.close()
                raise
        return job.outcome()


_pool = _Pool()


def run(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Call every task, on the pool and on the calling thread, and return when all are done.

    Tasks gain from the pool where they release the GIL. A call made from within a task runs its
    own tasks one after the other, as does every call when `n_threads` is 1.

    Parameters
    ----------
    tasks : sequence of callables without arguments
        They are begun in this order, and may run at the same time.

    Returns
    -------
    list
        ``[task() for task in tasks]``.

    Raises
    ------
    BaseException
        What the first task (in the order of `tasks`) that failed has raised. All others have run
        to their end by then, except after an interrupt (Ctrl-C): those that had begun
        have ended, the rest never begins. No task is running when this function is left.

    Examples
    --------
    >>> run([lambda: 1, lambda: 2])
    [1, 2]
    """
    return [tasks[0]()] if len(tasks) == 1 else _pool.run(tasks)
