import hashlib
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from experiments import parameters
from experiments.parameters import literal_assignments
from experiments.provenance import file_digests, provenance, write_with_record


def git(folder, *words):
    command = [
        "git",
        "-C",
        str(folder),
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.org",
        *words,
    ]
    return subprocess.check_output(command, text=True).strip()


def test_record_names_the_commit_and_changed_code_but_not_regenerated_figures(
    tmp_path, monkeypatch
):
    for name in ("Snakefile", "figures/fig1.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("as committed\n")
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "first"]):
        git(tmp_path, *words)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "figures" / "fig1.png").write_text("new\n")
    (tmp_path / "untracked").write_text("new\n")
    assert provenance("a/b")["commit"] == {
        "id": git(tmp_path, "rev-parse", "HEAD"),
        "modified": False,
    }
    (tmp_path / "Snakefile").write_text("edited\n")
    assert provenance("a/b")["commit"]["modified"] is True
    # Outside a repository and a notebook there are neither commit nor parameters.
    (tmp_path / ".git").rename(tmp_path / "moved")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    record = provenance("a/b")
    assert (record["commit"], record["parameters"]) == (None, {})


def test_record_is_json_and_has_what_a_reader_needs(monkeypatch):
    monkeypatch.setenv("TPLREPRO_PROFILE", "paper")
    monkeypatch.setenv("TPLREPRO_COMMAND", "make figures PROFILE=paper")
    results = {
        "supremum": np.inf,
        "undefined": float("nan"),
        "largest": np.float32(0.5),
        "exact": np.bool_(True),
    }
    record = provenance("tkde2019/fig3", results=results | {"sizes": (2, 3), "matrix": np.eye(2)})
    read = json.loads(json.dumps(record, allow_nan=False))
    plain = {"supremum": "inf", "undefined": "nan", "largest": 0.5, "exact": True}
    assert read["results"] == plain | {"sizes": [2, 3], "matrix": [[1.0, 0.0], [0.0, 1.0]]}
    assert "experiments.provenance" in read["modules"]
    assert (read["profile"], read["command"], read["data"]) == (
        "paper",
        "make figures PROFILE=paper",
        "none",
    )
    assert {"python", "tplrepro", "numpy", "scipy", "numba"} <= set(read["versions"])
    assert read["machine"]["cores"] == os.cpu_count()
    assert read["cost"]["cpu_seconds"] > 0.0
    assert 20 < read["cost"]["peak_megabytes"] < 100_000


def test_parameters_are_those_of_the_parameters_cell_and_of_what_is_injected_below(monkeypatch):
    cells = [
        "",
        "%matplotlib inline",
        "epsilon: float = 0.1  # nats\nsizes: list = [2, 5]",
        "# Parameters\nepsilon = 0.5",
    ]
    cells += ["import numpy", "level = 3", "parameters.check()"]
    names = {"In": cells, "epsilon": 0.5, "sizes": [2, 5], "level": 3}
    shell = SimpleNamespace(user_ns=names)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    parameters.check()
    assert provenance("a/b")["parameters"] == {"epsilon": 0.5, "sizes": [2, 5]}
    source = (
        "a: float = -0.1  # nats\nb = [1, 2]\nc: int | None = None\n"
        "d: np.ndarray = ()\ne = 'x'\n# end"
    )
    assert literal_assignments(source) == {"a": -0.1, "b": [1, 2], "c": None, "d": (), "e": "x"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"results": {"thing": object()}},
            "parameters and results must be numbers.*found object; convert it first",
        ),
        (
            {"data": "real"},
            "inputs must name the files read when data is 'real', found none; pass inputs",
        ),
        (
            {"data": "real", "inputs": ["gone"]},
            "inputs must be files or folders of files, found 'gone', which has none",
        ),
    ],
)
def test_wrong_records_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        provenance("a/b", **options)


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def test_digests_follow_links_are_never_of_nothing_and_have_names_that_hold_on_every_machine(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("TPLREPRO_DATA", str(tmp_path / "data"))
    geolife = tmp_path / "data" / "geolife"
    elsewhere = [tmp_path / "a" / "000", tmp_path / "b" / "000"]
    for folder in (*elsewhere, geolife):
        folder.mkdir(parents=True)
    (geolife / "Data").symlink_to(tmp_path / "a")
    with pytest.raises(ValueError, match="folders of files, found 'geolife', which has none"):
        provenance("a/b", data="real", inputs=[geolife])
    for folder, content in zip(elsewhere, (b"a", b"b"), strict=True):
        (folder / "1.plt").write_bytes(content)
    assert file_digests([geolife]) == {"geolife/Data/000/1.plt": sha256(b"a")}
    # Two files whose last two parts are the same, one of them given twice.
    digests = file_digests([*elsewhere, elsewhere[0] / "1.plt"])
    assert digests == {"000/1.plt": sha256(b"a"), "000/1.plt (2)": sha256(b"b")}


def test_many_files_become_the_digest_of_their_listing(tmp_path):
    for number in range(50):
        (tmp_path / f"{number:02}.plt").write_text(str(number))
    listing = "".join(f"{sha256(str(n).encode())}  {tmp_path.name}/{n:02}.plt\n" for n in range(50))
    listed = {"all 50 files, listed by sha256sum": sha256(listing.encode())}
    assert provenance("a/b", data="real", inputs=[tmp_path])["inputs"] == listed


def test_the_record_is_written_last_and_a_failure_leaves_nothing_partial(tmp_path, monkeypatch):
    with pytest.raises(TypeError):
        write_with_record(
            tmp_path / "fig1",
            {".png": b"picture", ".pdf": "text instead of bytes"},
            {"name": "fig1"},
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fig1.png"]
