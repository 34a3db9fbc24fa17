"""Several user threads, released GIL, forked children."""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import rankhinge.inference
from rankhinge import most_violating_ranking, most_violating_rankings
from rankhinge.losses import DCG, CustomLoss
from tests.inference.cases import large_list, reciprocal, steep_step

LIMIT = 120.0  # seconds after which a child is taken to hang


def in_threads(calls):
    """The results of all calls, each made on a thread of its own, all begun at once."""
    barrier = threading.Barrier(len(calls))
    results = [None] * len(calls)

    def work(number):
        barrier.wait()
        results[number] = calls[number]()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_callers_at_the_same_time():
    """Long lists, short lists and batches from several threads: each result as if it were alone."""
    lists = [
        (*large_list("overlapping", 100, 300_000), "ap"),
        (*large_list("trained", 100, 300_000), "ndcg"),
        (*large_list("integers", 20, 3000), "rr"),
        (*large_list("Cauchy", 5, 60), "auc"),
    ]
    alone = [most_violating_ranking(*arguments) for arguments in lists]
    calls = [lambda a=arguments: most_violating_ranking(*a) for arguments in lists * 5]
    for number, ranking in enumerate(in_threads(calls)):
        assert ranking.value == alone[number % 4].value
        assert ranking.coefficients.tobytes() == alone[number % 4].coefficients.tobytes()


def test_batches_at_the_same_time():
    rng = np.random.default_rng(0)
    offsets = np.arange(0, 60_001, 30)
    scores, relevant = rng.normal(size=60_000), rng.random(60_000) < 0.3
    alone = most_violating_rankings(scores, relevant, offsets)
    calls = [lambda: most_violating_rankings(scores, relevant, offsets)] * 6
    for batch in in_threads(calls):
        assert batch.values.tobytes() == alone.values.tobytes()


@pytest.mark.parametrize("make_loss", [lambda: CustomLoss(steep_step), lambda: DCG(reciprocal)])
def test_a_new_loss_used_first_by_several_threads(make_loss):
    """A loss compiles, or builds its table, when first used: also if that is on many threads at once."""
    loss = make_loss()
    lists = [large_list("overlapping", 20, size) for size in (50, 5000, 280_000, 500)]
    calls = [lambda a=arguments: most_violating_ranking(*a, loss).value for arguments in lists * 2]
    expected = [most_violating_ranking(*arguments, make_loss()).value for arguments in lists]
    assert in_threads(calls) == expected * 2


def test_kernels_release_the_gil():
    """Every compiled function of this room is compiled with ``nogil=True``."""
    found = []
    for info in pkgutil.iter_modules(rankhinge.inference.__path__):
        module = importlib.import_module(f"rankhinge.inference.{info.name}")
        found += [
            (f"{info.name}.{name}", kernel.targetoptions.get("nogil"))
            for name, kernel in vars(module).items()
            if isinstance(kernel, Dispatcher)
        ]
    assert len(found) > 20
    assert [name for name, nogil in found if not nogil] == []


def test_python_goes_on_while_a_kernel_runs():
    """Another thread gets its turns during one long call: it could not if the GIL were held."""
    rng = np.random.default_rng(0)
    scores, relevant = rng.normal(size=201_000), np.arange(201_000) < 1000
    most_violating_ranking(scores[900:1200], relevant[900:1200], method="greedy")
    began, ended = threading.Event(), threading.Event()

    def call():
        began.set()
        most_violating_ranking(scores, relevant, method="greedy")
        ended.set()

    thread = threading.Thread(target=call)
    n_turns = 0
    thread.start()
    began.wait()
    while not ended.is_set():
        time.sleep(0.001)
        n_turns += 1
    thread.join()
    assert n_turns >= 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_forked_children():
    """A child of a process whose threads have worked can work too, and gets the same bits."""
    program = """
        import multiprocessing, os
        import numpy as np
        from rankhinge import most_violating_ranking, most_violating_rankings
        rng = np.random.default_rng(0)
        scores, relevant = rng.normal(size=280_000), rng.random(280_000) < 0.001
        offsets = np.arange(0, 280_001, 50)
        def values(_=None):
            one = most_violating_ranking(scores, relevant).value
            return one, most_violating_rankings(scores, relevant, offsets, "ndcg").values.sum()
        expected = values()
        child = os.fork()
        if child == 0:
            os._exit(0 if values() == expected else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(*[v == expected for v in pool.map(values, range(4))])
        print(values() == expected)
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(program)],
        env={**os.environ, "RANKHINGE_NUM_THREADS": "3"},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["0", "True", "True", "True", "True", "True"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork_while_another_thread_compiles():
    """The child does not wait for a lock that nobody holds any more."""
    program = textwrap.dedent(
        """
        import os, signal, threading, time, warnings
        import numpy as np
        from rankhinge import losses, structured_hinge
        from rankhinge.inference import callbacks
        warnings.simplefilter("ignore")
        scores, relevant = np.arange(50.0), np.arange(50) % 5 == 0
        structured_hinge(scores, relevant, "ap")
        held, done = threading.Event(), threading.Event()

        def hold():
            with callbacks._compiling:
                held.set()
                done.wait()

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            structured_hinge(scores, relevant, "ap")
            with callbacks._compiling:
                os._exit(0)
        print(os.waitpid(child, 0)[1])
        done.set()
        thread.join()
        """
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=LIMIT, check=True)
    assert done.stdout.strip() == "0", done.stderr
