"""``rankhinge report``: the page is written, and about the model."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import sys

import pytest

pytest.importorskip("jinja2")


def data_in(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, flags=re.DOTALL)[1])


def test_queries(call, files, tmp_path):
    target = tmp_path / "page.html"
    done = call("report", files / "ranker.safetensors", files / "fold" / "test.txt", "-o", target, "--json")
    assert done.code == 0, done.err
    page = target.read_text("utf-8")
    assert done.facts["n_bytes"] == len(page.encode())
    evaluated = call("evaluate", files / "ranker.safetensors", files / "fold" / "test.txt", "--json").facts
    assert done.facts["metrics"] == evaluated["metrics"]
    for metric in evaluated["metrics"].values():
        assert f"{metric['value']:.4f}" in page
    data = data_in(page)
    assert len(data["queries"]["names"]) == 15
    assert data["convergence"]["gap"][-1] <= 1e-3
    # Documents by their names.
    assert re.search(r">D\d+-\d+<", page)


def test_one_list_and_classes(call, files, tmp_path):
    target = tmp_path / "page.html"
    assert call("report", files / "classifier.safetensors", files / "rows_test.txt", "-o", target).code == 0
    assert data_in(target.read_text("utf-8"))["queries"] is None
    done = call("report", files / "three.safetensors", files / "classes.txt", "-o", target)
    assert done.code == 2
    assert done.err.endswith("the model has 3 classes, choose one with --class\n")
    assert call("report", files / "three.safetensors", files / "classes.txt", "-o", target, "--class", 2).code == 0
    assert "class 2 first" in target.read_text("utf-8")


def test_images(call, files, tmp_path):
    picture = base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
    (tmp_path / "a.png").write_bytes(picture)
    listed, target = tmp_path / "images.txt", tmp_path / "page.html"
    listed.write_text("a.png\n" * 80)
    given = ("report", files / "classifier.safetensors", files / "rows_test.txt", "-o", target, "--images", listed)
    assert call(*given).code == 0
    assert base64.b64encode(picture).decode() in target.read_text("utf-8")
    listed.write_text("a.png\n" * 79)
    assert call(*given).err.startswith(f"rankhinge: {listed}: 79 images for the 80 rows")
    listed.write_text("images.txt\n" * 80)
    done = call(*given)
    assert done.code == 3
    assert "neither PNG, JPEG, GIF nor WebP, 'images.txt'" in done.err
    listed.write_text("nowhere.png\n" * 80)
    done = call(*given)
    assert done.code == 3
    assert re.fullmatch(
        rf"rankhinge: {listed}:\d+: the image cannot be read, 'nowhere.png': No such file or directory\n", done.err
    )


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes on Linux")
def test_names_that_are_no_text(call, files, tmp_path):
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    os.mkdir(folder)
    model, rows, page = (os.path.join(folder, name) for name in ("m.safetensors", "rows.txt", "page.html"))
    shutil.copy(files / "classifier.safetensors", model)
    shutil.copy(files / "rows_test.txt", rows)
    assert call("report", model, rows, "-o", page, "--json").code == 0
    with open(page, encoding="utf-8") as file:
        assert r"\udcff/m.safetensors" in file.read()


def test_missing_extra(call, files, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    done = call("report", files / "classifier.safetensors", files / "rows_test.txt", "-o", tmp_path / "p.html")
    assert (done.code, done.err) == (4, "rankhinge: the report needs jinja2: pip install 'rankhinge[report]'\n")
    assert not (tmp_path / "p.html").exists()
