"""Every experiment runs as a trial; a data set that is not there is named."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
WITH_TORCH = {"beyond", "cifar10"}
SCRIPTS = sorted(path.stem for path in (ROOT / "experiments").glob("[!_]*.py"))


def needs(script):
    if script in WITH_TORCH and find_spec("torch") is None:
        pytest.skip("torch is not installed")


def run(script, *arguments, **environment):
    return subprocess.run(
        [sys.executable, str(ROOT / "experiments" / f"{script}.py"), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_trial(script):
    needs(script)
    done = run(script, "--quick")
    if "a data set is missing" in done.stdout + done.stderr:
        pytest.skip(done.stdout.strip() or done.stderr.strip())
    assert done.returncode == 0, done.stderr
    page = ROOT / ".make" / "experiments" / f"{script}.md"
    assert page.read_text("utf-8").startswith("# Experiment: ")


@pytest.mark.parametrize("script", SCRIPTS)
def test_missing_data_are_named(script, tmp_path):
    needs(script)
    done = run(script, "--quick", RANKHINGE_DATA=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "skipped, a data set is missing: " in done.stdout


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_page_is_that_of_the_results(script, tmp_path):
    """Whoever edits a page by hand, or results without the page, is found out."""
    if not (ROOT / "experiments" / "results" / f"{script}.json").exists():
        pytest.skip("there are no results yet")
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'experiments')!r})\n"
        "import importlib, _run\n"
        f"made = importlib.import_module('_{script}_page')\n"
        "_run.save_figure = lambda run, figure, name: f'../../experiments/results/{name}.svg'\n"
        "made.save_figure = _run.save_figure\n"
        f"sys.stdout.reconfigure(encoding='utf-8'); print(made.page(_run.Run({script!r})))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    page = (ROOT / "docs" / "experiments" / f"{script}.md").read_text("utf-8")
    assert done.stdout.rstrip("\n") == page.rstrip("\n")
