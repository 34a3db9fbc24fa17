"""The thread pool: order, errors, interrupts, nesting, many callers, forks."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref

import pytest

from rankhinge import _threads
from rankhinge._threads import n_threads, run

LIMIT = 60.0  # seconds after which a call is taken to hang


@pytest.fixture(params=["1", "2", "5"])
def any_threads(request, monkeypatch):
    monkeypatch.setenv("RANKHINGE_NUM_THREADS", request.param)
    return int(request.param)


@pytest.fixture
def three_threads(monkeypatch):
    monkeypatch.setenv("RANKHINGE_NUM_THREADS", "3")


def in_a_new_process(program, **environment):
    """Run `program`, and return what it printed; a hang fails the test."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(program)],
        env={**os.environ, "RANKHINGE_NUM_THREADS": "3", **environment},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


class TestNumberOfThreads:
    def test_the_variable_decides(self, monkeypatch):
        monkeypatch.setenv("RANKHINGE_NUM_THREADS", " 7 ")
        assert n_threads() == 7

    @pytest.mark.parametrize("unset", [None, ""])
    def test_default_is_what_this_process_may_use(self, monkeypatch, unset):
        if unset is None:
            monkeypatch.delenv("RANKHINGE_NUM_THREADS", raising=False)
        else:
            monkeypatch.setenv("RANKHINGE_NUM_THREADS", unset)
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        if hasattr(os, "sched_getaffinity"):
            assert n_threads() == len(os.sched_getaffinity(0))
        else:
            assert n_threads() == os.cpu_count()

    def test_default_where_affinity_is_unknown(self, monkeypatch):
        monkeypatch.delenv("RANKHINGE_NUM_THREADS", raising=False)
        monkeypatch.delattr(os, "sched_getaffinity", raising=False)
        monkeypatch.setattr(os, "cpu_count", lambda: None)
        assert n_threads() == 1

    @pytest.mark.parametrize(
        ("limit", "expected"), [("1", 1), ("3", 3), ("3,1", 3), ("64", 8), ("", 8), ("0", 8), ("many", 8)]
    )
    def test_a_limit_for_workers_that_share_the_cpus(self, monkeypatch, limit, expected):
        monkeypatch.delenv("RANKHINGE_NUM_THREADS", raising=False)
        monkeypatch.setenv("OMP_NUM_THREADS", limit)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(8), raising=False)
        assert n_threads() == expected
        monkeypatch.setenv("RANKHINGE_NUM_THREADS", "5")
        assert n_threads() == 5

    @pytest.mark.parametrize("text", ["0", "-2", "two", "1.5", "²"])
    def test_nonsense_is_refused_by_name(self, monkeypatch, text):
        monkeypatch.setenv("RANKHINGE_NUM_THREADS", text)
        with pytest.raises(ValueError, match=f"RANKHINGE_NUM_THREADS .*{text}"):
            n_threads()


class TestResults:
    @pytest.mark.parametrize("n_tasks", [0, 1, 2, 3, 100])
    def test_in_order(self, any_threads, n_tasks):
        def task(k):
            time.sleep(0.001 * (k % 3 == 0))
            return k

        assert run([lambda k=k: task(k) for k in range(n_tasks)]) == list(range(n_tasks))

    def test_each_task_runs_once(self, any_threads):
        for _ in range(200):
            calls = []
            run([lambda k=k, calls=calls: calls.append(k) for k in range(10)])
            assert sorted(calls) == list(range(10))

    def test_the_caller_takes_part(self, three_threads):
        meeting = threading.Barrier(3, timeout=LIMIT)

        def task():
            meeting.wait()
            return threading.get_ident()

        identities = run([task] * 3)
        assert len(set(identities)) == 3
        assert threading.get_ident() in identities

    def test_one_thread_means_the_calling_thread(self, monkeypatch):
        monkeypatch.setenv("RANKHINGE_NUM_THREADS", "1")
        assert set(run([threading.get_ident] * 20)) == {threading.get_ident()}

    def test_threads_are_daemons_and_reused(self, three_threads):
        for _ in range(20):
            run([lambda: time.sleep(0.001)] * 3)
        ours = [t for t in threading.enumerate() if t.name.startswith("rankhinge-")]
        assert ours
        assert all(t.daemon for t in ours)
        names = {t.name for t in ours}
        run([lambda: time.sleep(0.001)] * 3)
        assert {t.name for t in threading.enumerate() if t.name.startswith("rankhinge-")} == names

    def test_where_no_thread_can_be_started_the_caller_does_all(self, three_threads, monkeypatch):
        def refuse(self):
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(_threads, "_pool", _threads._Pool())
        monkeypatch.setattr(threading.Thread, "start", refuse)
        assert run([lambda: 1, lambda: 2, lambda: 3]) == [1, 2, 3]


class TestNestedCalls:
    def test_run_in_the_thread_that_makes_them(self, three_threads):
        def task():
            time.sleep(0.002)
            return {threading.get_ident(), *run([threading.get_ident] * 4)}

        assert all(len(identities) == 1 for identities in run([task] * 6))

    def test_the_caller_is_free_again_afterwards(self, three_threads):
        run([lambda: run([lambda: 1] * 2)] * 3)
        meeting = threading.Barrier(3, timeout=LIMIT)
        run([meeting.wait] * 3)


class TestErrors:
    def test_first_in_order_is_raised_after_all_have_run(self, any_threads):
        done = []

        def task(k):
            time.sleep(0.001 * (k == 3))
            done.append(k)
            if k in (3, 5):
                raise ValueError(f"task {k}")

        with pytest.raises(ValueError, match="task 3"):
            run([lambda k=k: task(k) for k in range(8)])
        assert sorted(done) == list(range(8))
        assert run([lambda: 1, lambda: 2]) == [1, 2]

    @pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
    def test_an_exit_comes_first_and_ends_no_thread(self, any_threads, kind):
        def fail():
            raise ValueError

        def leave():
            raise kind

        with pytest.raises(kind):
            run([fail, leave])
        assert run([lambda: 1] * 5) == [1] * 5

    def test_nothing_is_kept_alive(self, three_threads):
        class Array:
            pass

        def big():
            array = Array()
            references.append(weakref.ref(array))
            return array

        def big_and_fail():
            keep = big()
            raise ValueError(str(keep))

        references = []
        gc.disable()  # what is checked is that no reference cycle is left behind
        try:
            for _ in range(10):
                run([big] * 3)
                with pytest.raises(ValueError):
                    run([big, big_and_fail, big])
            limit = time.monotonic() + LIMIT
            while any(r() is not None for r in references) and time.monotonic() < limit:
                time.sleep(0.01)  # a helper may need a moment to let its last job go
            assert not any(r() is not None for r in references)
        finally:
            gc.enable()


class TestInterrupts:
    """Ctrl-C leaves `run` only when no task is running, and the pool works on."""

    def test_in_the_middle_of_a_call(self):
        printed = in_a_new_process(
            """
            import os, signal, threading, time
            from rankhinge._threads import run
            # A shell's background jobs inherit that Ctrl-C is ignored.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            running, begun, lock = 0, 0, threading.Lock()
            def task():
                global running, begun
                with lock: running += 1; begun += 1
                limit = time.monotonic() + 0.3
                try:
                    if threading.current_thread() is threading.main_thread():
                        os.kill(os.getpid(), signal.SIGINT)
                    while time.monotonic() < limit: time.sleep(0.001)
                finally:
                    with lock: running -= 1
            try:
                run([task] * 100)
            except KeyboardInterrupt:
                print("interrupted", running, begun < 100)
            print(run([lambda k=k: k for k in range(5)]) == list(range(5)))
            """
        )
        assert printed == ["interrupted", "0", "True", "True"]

    def test_at_random_moments(self):
        # The alarm falls anywhere: in a task, in the pool's own lines, while waiting.
        printed = in_a_new_process(
            """
            import random, signal, threading, time
            from rankhinge._threads import run
            def interrupt(*_): raise KeyboardInterrupt
            signal.signal(signal.SIGALRM, interrupt)
            running = []
            def task():
                # Helpers only: in the caller the interrupt may fall between append and pop.
                if threading.current_thread() is threading.main_thread():
                    return
                running.append(1)
                time.sleep(0.0001)
                running.pop()
            run([lambda: 1] * 3)
            random.seed(0)
            interrupts = left_running = 0
            for _ in range(600):
                try:
                    signal.setitimer(signal.ITIMER_REAL, random.uniform(5e-5, 8e-4))
                    for _ in range(20): run([task] * 4)
                    time.sleep(0.01)
                except KeyboardInterrupt:
                    left_running += len(running)
                    interrupts += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
            print(interrupts > 300, left_running, run([lambda: 1, lambda: 2]) == [1, 2])
            print(sum(t.name.startswith("rankhinge-") for t in threading.enumerate()))
            """
        )
        assert printed == ["True", "0", "True", "2"]


class TestManyCallers:
    def test_at_once(self, three_threads):
        wrong = []

        def caller(number):
            for repeat in range(50):
                expected = [(number, repeat, k) for k in range(7)]
                if run([lambda e=e: e for e in expected]) != expected:
                    wrong.append((number, repeat))

        callers = [threading.Thread(target=caller, args=(k,), daemon=True) for k in range(6)]
        for thread in callers:
            thread.start()
        for thread in callers:
            thread.join(LIMIT)
        assert not any(thread.is_alive() for thread in callers)
        assert not wrong

    def test_one_does_not_wait_for_the_tasks_of_another(self, three_threads):
        release = threading.Event()
        slow = threading.Thread(target=run, args=([lambda: release.wait(LIMIT)] * 9,), daemon=True)
        slow.start()
        try:
            # All helpers are taken: the call must still end, on its own thread.
            assert run([lambda: 1, lambda: 2]) == [1, 2]
        finally:
            release.set()
        slow.join(LIMIT)
        assert not slow.is_alive()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
class TestForks:
    def test_child_makes_threads_of_its_own(self):
        printed = in_a_new_process(
            """
            import os, threading
            from rankhinge._threads import run
            def meet():
                meeting = threading.Barrier(3, timeout=30)
                return run([lambda k=k: (meeting.wait(), k)[1] for k in range(3)])
            assert meet() == [0, 1, 2]
            child = os.fork()
            if child == 0:
                os._exit(0 if meet() == [0, 1, 2] else 1)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), meet() == [0, 1, 2])
            """
        )
        assert printed == ["0", "True"]

    def test_fork_while_tasks_run(self):
        printed = in_a_new_process(
            """
            import os, threading, time
            from rankhinge._threads import run
            stop = threading.Event()
            def caller():
                while not stop.is_set(): run([lambda: time.sleep(0.0002)] * 3)
            threads = [threading.Thread(target=caller) for _ in range(3)]
            for t in threads: t.start()
            codes = []
            for _ in range(20):
                child = os.fork()
                if child == 0:
                    os._exit(0 if run([lambda k=k: k for k in range(9)]) == list(range(9)) else 1)
                codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            stop.set()
            for t in threads: t.join()
            print(set(codes))
            """
        )
        assert printed == ["{0}"]

    def test_fork_from_within_a_task(self):
        # What a data loader does that is built inside a task: the child never comes back to `run`.
        printed = in_a_new_process(
            """
            import os
            from rankhinge._threads import run
            def task():
                child = os.fork()
                if child == 0:
                    os._exit(0 if run([lambda: 1, lambda: 2]) == [1, 2] else 1)
                return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            print(set(run([task] * 6)))
            """
        )
        assert printed == ["{0}"]

    def test_multiprocessing_with_fork(self):
        printed = in_a_new_process(
            """
            import multiprocessing
            from rankhinge._threads import run
            def square(x): return sum(run([lambda k=k: k * x for k in range(5)]))
            run([lambda: 1] * 3)
            with multiprocessing.get_context("fork").Pool(2) as pool:
                print(*pool.map(square, range(4)))
            """
        )
        assert printed == ["0", "10", "20", "30"]


def test_exit_is_not_held_up_by_waiting_threads():
    began = time.monotonic()
    in_a_new_process("from rankhinge._threads import run; run([lambda: 1] * 3)")
    assert time.monotonic() - began < LIMIT


def test_call_at_exit():
    printed = in_a_new_process(
        """
        import atexit
        from rankhinge._threads import run
        atexit.register(lambda: print(*run([lambda: 1, lambda: 2])))
        """
    )
    assert printed == ["1", "2"]


def test_signals_stay_as_they_were():
    handler = signal.getsignal(signal.SIGINT)
    run([lambda: 1] * 3)
    assert signal.getsignal(signal.SIGINT) is handler
