"""The repository's own files agree with each other."""

import importlib
import inspect
import json
import re
import shutil
import subprocess
import tomllib
import venv
from pathlib import Path

import nbformat
import psutil
import pytest
import yaml
from packaging.utils import canonicalize_name

from tests.page.serving import PATIENCE, wait_until
from workflow.configuration import ROOT, read_notebooks, sources
from workflow.environment.conda import direct_dependencies, environment_file, pinned_versions
from workflow.publishing.citation import bibtex
from workflow.publishing.site import api_pages, gallery, with_links_to_api
from workflow.publishing.start_page import START, start_page

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

# Paths of one machine and addresses of indexes, put together here, so that this file does not hold
# them.
FOREIGN = ["../" + "shared", "/" + "work/", "/" + "root/", "/" + "home/"]
FOREIGN += ["index" + "-url", "find" + "-links", "files.python" + "hosted", "pypi" + ".org/simple"]

#: What somebody who works here uses; `make help` names it first.
EVERY_DAY = ["help", "env", "figures", "test", "lint", "notebooks", "claims", "docs", "clean"]


def test_no_file_names_a_machine_or_a_package_index_and_no_data_and_no_large_file_is_tracked():
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, so there is no list of tracked files")
    listed = subprocess.check_output(["git", "-C", str(ROOT), "ls-files", "-z"], text=True)
    paths = [path for path in map(ROOT.joinpath, listed.split("\0")) if path.is_file()]
    contents = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in paths}
    texts = {name: content for name, content in contents.items() if b"\0" not in content[:8000]}
    found = {
        (name, words) for name, text in texts.items() for words in FOREIGN if words.encode() in text
    }
    assert found <= {(".ci/run", FOREIGN[0])}
    assert {path for path in paths if path.is_relative_to(ROOT / "data")} <= {
        ROOT / "data" / "README.md"
    }
    assert [path.name for path in paths if path.stat().st_size > 1_000_000] == []


def test_lock_and_the_environment_of_conda_users_pin_every_direct_dependency():
    line = r"[a-z0-9-]+==[0-9][0-9a-z.+]*(?: ; [^\\]+)? \\|    --hash=sha256:[0-9a-f]{64}(?: \\)?"
    comment, *lines = (ROOT / "requirements.lock").read_text().splitlines()
    assert comment.startswith("# ")
    assert [one for one in lines if not re.fullmatch(line, one)] == []
    direct = set(direct_dependencies())
    assert all(direct <= set(pinned_versions(python=python)) for python in ("3.11", "3.12", "3.13"))
    assert (ROOT / "environment.yml").read_text() == environment_file()
    # Each has its reason in REPRODUCING.md.
    reproducing = (ROOT / "REPRODUCING.md").read_text()
    rows = re.findall(
        r"^\| ([a-z0-9, -]+)(?: \([a-z0-9 `]+\))? \| .{5,} \|$", reproducing, re.MULTILINE
    )
    explained = {canonicalize_name(name) for row in rows for name in row.split(", ")}
    extras = {"ipywidgets", "jupyterlab", "voila", "pm4py", "hatchling", "editables"}
    assert (direct | extras) - explained == set()


def environment(folder, script):
    """An environment, made already, whose interpreter is a shell script: its body has the words in
    "$@"."""
    python = folder / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(
        f"#!/bin/sh\n[ $1 = -c ] && echo works && exit\n[ $1 = -I ] && exit\n{script}\n"
    )
    python.chmod(0o755)
    locks = ("requirements.lock", "requirements-more.lock")
    for name in (*locks, "pyproject.toml", ".venv/ready"):
        (folder / name).touch()


@pytest.mark.parametrize(
    "target", ["figures", "own-data", "explore", "lab", "test-notebooks", "test"]
)
def test_a_signal_to_make_ends_what_make_started(target, tmp_path):
    environment(tmp_path, "echo $$ >> started\nexec sleep 60")
    command = ["make", "-f", ROOT / "Makefile", target]
    make = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL)
    started = tmp_path / "started"
    wait_until(lambda: started.is_file() and started.read_text().count("\n") == 1)
    processes = [psutil.Process(int(number)) for number in started.read_text().split()]
    make.terminate()
    assert make.wait(PATIENCE) != 0
    assert psutil.wait_procs(processes, PATIENCE)[1] == []


def test_make_hands_settings_over_as_words_and_none_of_them_to_the_shell(tmp_path):
    environment(tmp_path, "printf '%s\\n' \"$@\"")
    attack = "x'; touch attacked; \"`touch attacked`"
    given = [f"{name}={attack}" for name in ("PROFILE", "ONLY", "JOBS", "ARGS")]
    for target in ("figures", "test-notebooks", "notebooks", "lock"):
        command = ["make", "-f", ROOT / "Makefile", target, *given]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert attack in done.stdout or attack in done.stdout.replace("\n", " ")
    assert not (tmp_path / "attacked").exists()
    for target in ("figures", "test-notebooks", "notebooks"):
        command = [
            "make",
            "--no-print-directory",
            "-f",
            ROOT / "Makefile",
            target,
            "ONLY=a/one b/two",
        ]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-2:] == ["a/one", "b/two"]


def test_make_help_begins_with_the_nine_commands_of_every_day_and_describes_every_target():
    command = ["make", "--no-print-directory", "-C", ROOT, "help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    every_day, *others = shown.strip().split("\n\n")
    title, *lines = every_day.splitlines()
    assert title == "Every day"
    assert [line.split()[1] for line in lines] == EVERY_DAY
    described = [line.split()[1] for part in (every_day, *others) for line in part.splitlines()[1:]]
    (phony,) = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(phony.split()) - set(described) == {"ours", "ours-more", "broken"}


def test_make_refuses_an_environment_of_another_folder_and_uses_a_given_one_as_it_is(tmp_path):
    for name in (
        "Makefile",
        "workflow/environment/own_environment.py",
        "requirements.lock",
        "pyproject.toml",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "workflow/__init__.py").touch()
    module = tmp_path / "workflow/checks/committed_notebooks.py"
    module.parent.mkdir()
    module.write_text("print('ran')")
    venv.create(tmp_path / "other")
    (tmp_path / "other/ready").touch()
    (tmp_path / ".venv").symlink_to("other")
    installed = (
        next((tmp_path / "other").glob("lib/python*/site-packages")) / "tplrepro-1.dist-info"
    )
    installed.mkdir()
    (installed / "METADATA").write_text("Name: tplrepro\n")

    def make(*words, folder):
        origin = {"url": folder.as_uri(), "dir_info": {"editable": True}}
        (installed / "direct_url.json").write_text(json.dumps(origin))
        command = ["make", "--no-print-directory", "test-notebooks", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    clone, given = Path("/a clone"), f"VENV={tmp_path / 'other'}"
    refused = make(folder=clone)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert f"must be made for {tmp_path}, found {clone}; remove it" in refused.stderr
    assert make(folder=tmp_path).stdout == "ran\n"
    (tmp_path / "other/ready").unlink()
    (tmp_path / ".venv").unlink()
    assert make(given, folder=tmp_path).stdout == "ran\n"
    assert "install this folder there: pip install --editable ." in make(given, folder=clone).stderr
    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize("target", ["article", "docs", "docs-links", "check", "figures"])
def test_make_installs_nothing_into_a_given_environment_and_names_what_is_missing(target, tmp_path):
    for name in ("Makefile", "workflow/environment/own_environment.py", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "requirements-more.lock").touch()
    venv.create(tmp_path / "given")
    (site,) = (tmp_path / "given").glob("lib/python*/site-packages")
    for name in ("tplrepro", "furo"):
        installed = site / f"{name}-1.dist-info"
        installed.mkdir()
        (installed / "METADATA").write_text(f"Name: {name}\n")
        origin = {"url": tmp_path.as_uri(), "dir_info": {"editable": True}}
        (installed / "direct_url.json").write_text(json.dumps(origin))
    before = sorted(tmp_path.rglob("*"))
    command = ["make", target, f"VENV={tmp_path / 'given'}", "PROFILE=paper"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert "found no jax, keras, myst-nb, numpydoc, pypandoc-binary, sphinx" in done.stderr
    assert "install it there: pip install -r requirements-more.lock" in done.stderr
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("words", [["help"], ["-n", "env"]])
def test_reading_the_makefile_removes_nothing_of_a_broken_environment(words, tmp_path):
    environment(tmp_path, "exit 1")
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / ".venv/bin/python").write_text("#!/bin/sh\nexit 127\n")
    before = sorted(tmp_path.rglob("*"))
    done = subprocess.run(["make", *words], cwd=tmp_path, capture_output=True, check=True)
    assert sorted(tmp_path.rglob("*")) == before
    assert (b"making .venv" in done.stdout) == (words == ["-n", "env"])


#: What repo2docker, and so Binder, would take in place of environment.yml.
BEFORE_CONDA = (
    "binder",
    ".binder",
    "Dockerfile",
    "Project.toml",
    "default.nix",
    "runtime.txt",
    "DESCRIPTION",
)


def test_binder_builds_the_environment_of_conda_users():
    assert (ROOT / "environment.yml").is_file()
    assert [name for name in BEFORE_CONDA if (ROOT / name).exists()] == []


def links_of(path):
    """Files and anchors that the text of a page, or the cells and outputs of a notebook, link
    to."""
    text = path.read_text()
    if path.suffix == ".ipynb":
        cells = nbformat.reads(text, as_version=4).cells
        texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
        outputs = [output for cell in cells for output in cell.get("outputs", [])]
        text = "\n".join(
            texts + [output.get("data", {}).get("text/markdown", "") for output in outputs]
        )
    links = (
        link.partition("#")
        for link in re.findall(r"\]\(([^\s()#:]*(?:#[\w-]+)?)(?: \"\w+\")?\)", text)
    )
    return {((path.parent / file).resolve() if file else path, anchor) for file, _, anchor in links}


PATTERNS = ("*.md", "data/*.md", "docs/**/*.md", "notebooks/[!.]*/*.ipynb")
PAGES = [path for pattern in PATTERNS for path in ROOT.glob(pattern) if path.parent.name != "site"]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_exist_and_lead_from_notebooks_to_claims_and_figures_and_from_claims_to_notebooks(
    path,
):
    links = links_of(path)
    for file, anchor in links:
        assert file.exists(), file
        headings = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE) if anchor else ()
        slugs = {
            re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-")
            for heading in headings
        }
        assert not anchor or anchor in slugs or f'<a id="{anchor}"></a>' in file.read_text(), (
            file,
            anchor,
        )
    name = path.relative_to(ROOT).with_suffix("").as_posix().removeprefix("notebooks/")
    if path.suffix == ".ipynb" and name not in (
        "explore/leakage",
        "explore/own_data",
        "explore/publishing",
    ):
        paper = name.split("/")[0]
        published = [file for file in [ROOT / f"figures/{name}.png"] if file.exists()]
        assert {ROOT / f"docs/claims/{paper}.md", *published} <= {file for file, _ in links}
        assert path in {file for file, _ in links_of(ROOT / f"docs/claims/{paper}.md")}


def test_tests_that_the_documents_cite_exist():
    defined, cited = set(), set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        names = re.findall(r"def (test_\w+)", path.read_text())
        defined |= {(path.name, name) for name in ["", *names]}
    for path in [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]:
        cited |= set(re.findall(r"(test_\w+\.py)(?:::(test_\w+))?", path.read_text()))
    assert cited <= defined


def test_gallery_and_start_page_show_every_notebook():
    linked = re.findall(r"^:link: /notebooks/([\w/]+)$", gallery(), re.MULTILINE)
    assert linked == [entry.notebook for entry in read_notebooks().values()]
    assert (ROOT / START).read_text() == start_page(), "run make notebooks"
    assert set(sources()) <= set(re.findall(r"- \[\w+\]\(([\w/]+)\.ipynb\): \w", start_page()))
    assert all(file.exists() for file, _ in links_of(ROOT / START))


def test_the_api_describes_every_public_name_once_on_the_page_of_its_room():
    pages = api_pages()
    described = {
        name: re.findall(r"^\.\. auto\w+:: ([\w.]+)$", text, re.MULTILINE)
        for name, text in pages.items()
    }
    paths = [path for found in described.values() for path in found]
    names = [path.rpartition(".")[2] for path in paths]
    assert len(paths) == len(set(paths))
    for room in ("tplrepro", "tplrepro.sip", "tplfrontier", "tplreport"):
        module = importlib.import_module(room)
        assert {
            name for name in module.__all__ if not inspect.ismodule(getattr(module, name))
        } <= set(names)
    some = {
        "tplrepro.PrivacyLossFunction",
        "tplrepro.published.algorithm_1",
        "tplrepro.linear_program.loss",
    }
    assert some <= set(described["docs/api/tplrepro.leakage.md"])
    assert sorted(re.findall(r"^   (\S+)$", pages["docs/api/index.md"], re.M)) == sorted(paths)


def test_the_readme_is_short_and_prints_what_it_says_and_its_test_command_is_run(
    capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    readme = (ROOT / "README.md").read_text()
    assert readme.count("\n") <= 100
    exec("".join(re.findall(r"```python\n(.*?)```", readme, re.S)), {})
    assert [capsys.readouterr().out] == re.findall(r"```text\n(.*?)```", readme, re.S)
    landing = (ROOT / "docs/site/index.md").read_text()
    assert all(
        text in readme for text in re.findall(r':(?:start-after|end-before): "(.*)"', landing)
    )
    script = ROOT / ".ci" / "run"
    assert re.search(r"^make test\b", script.read_text(), re.MULTILINE)
    assert script.stat().st_mode & 0o111


def test_what_the_readme_has_papermill_write_is_ignored_by_git():
    readme = (ROOT / "README.md").read_text()
    (target,) = re.findall(r"papermill \S+ (\S+) -p", readme)
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert f"{target.split('/')[0]}/" in ignored


def test_whoever_has_a_problem_or_a_question_learns_what_to_do_and_which_conduct_is_expected():
    contributing = (ROOT / "CONTRIBUTING.md").read_text()
    section = contributing.split("\n## Problems, questions, conduct\n")[1].split("\n## ")[0]
    for words in ("open an issue", "`repository-code`", "A question", "Contributor Covenant"):
        assert words in section
    assert re.search(r"^(# )?repository-code: ", (ROOT / "CITATION.cff").read_text(), re.M)


def test_bibtex_is_made_from_the_citation_file():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    filled = citation | {"doi": "10.5281/zenodo.0", "url": "https://example.org"}
    own, *papers = re.split(r"\n(?=@)", bibtex(filled))
    assert own.startswith("@software{")
    assert f"version = {{{PROJECT['version']}}}" in own
    assert "doi = {10.5281/zenodo.0}" in own
    for entry, paper in zip(papers, citation["references"], strict=True):
        assert f"title = {{{{{paper['title']}}}}}" in entry
        assert f"year = {{{paper['year']}}}" in entry
        assert all(person["family-names"] in entry for person in paper["authors"])
        for field in ("journal", "doi", "volume"):
            assert (f"{field} = {{{paper.get(field)}}}" in entry) == (field in paper)


def test_the_map_leads_to_the_api_and_names_the_file_of_what_has_no_page_there():
    described = {path for page in api_pages().values() for path in re.findall(r":: (\S+)", page)}
    shown = with_links_to_api((ROOT / "docs" / "map.md").read_text())
    assert "(../tpl" not in shown  # a browser would download it
    targets = re.findall(r"\{py:obj\}`\S+ <(\S+)>`", shown)
    assert len(targets) > 50
    for path in targets:
        assert path in described or path.rpartition(".")[0] in described, path
    assert "{py:obj}`TemporalLeakage.tpl <tplrepro.leakage.temporal.TemporalLeakage.tpl>`" in shown
    assert "`vertex_loss` (tplrepro/leakage/vertex.py)" in shown


# Fields of the Citation File Format 1.2.0 that are used here. Validators on the package index pin
# an old jsonschema, which Jupyter cannot use.
FIELDS = "cff-version message title authors type version date-released repository-code url license"
FIELDS += " abstract keywords references doi"
OF_REFERENCE = "type title authors year doi identifiers"
OF_REFERENCE += " journal collection-title volume number issue start end"
DOI = r"10\.\d{4,9}(\.\d+)?/[A-Za-z0-9:/_;\-\.\(\)\[\]\\]+"


def check_citation(citation):
    assert citation["cff-version"] == "1.2.0"
    assert {"message"} < citation.keys() <= set(FIELDS.split())
    for reference in citation["references"]:
        assert {"type"} < reference.keys() <= set(OF_REFERENCE.split())
    for work in (citation, *citation["references"]):
        assert work["title"]
        assert re.fullmatch(DOI, work.get("doi", "10.1000/1"))
        assert all(
            "name" in author or {"family-names", "given-names"} <= author.keys()
            for author in work["authors"]
        )


def test_citation_file_is_valid_names_the_five_papers_and_has_the_licence_of_the_package():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    check_citation(citation)
    assert PROJECT["license"] == citation["license"] == "Apache-2.0"
    changelog = (ROOT / "CHANGELOG.md").read_text()
    dated = re.search(r"^## \[(.*?)\](?:, not yet released| - (\S+))$", changelog, re.M)
    released = str(citation["date-released"]) if "date-released" in citation else None
    assert dated.groups() == (PROJECT["version"], released)
    # What a release fills in is valid once it is.
    filled = (ROOT / "CITATION.cff").read_text()
    for name in ("date-released", "repository-code", "url", "doi"):
        assert re.search(rf"^(# )?{name}: ", filled, re.M)
        filled = filled.replace(f"# {name}: ", f"{name}: ")
    check_citation(yaml.safe_load(filled))
    assert "Apache License" in (ROOT / "LICENSE").read_text()
    # An archive that reads .zenodo.json would ignore CITATION.cff.
    assert not (ROOT / ".zenodo.json").exists()
    assert [reference["year"] for reference in citation["references"]] == [
        2019,
        2017,
        2023,
        2022,
        2016,
    ]


# What states the version of the package or the least Python, which the published figures were made
# with.
STATED = {
    "tplrepro/__init__.py": ['\n__version__ = "{version}"\n'],
    "CITATION.cff": ["\nversion: {version}\n"],
    "codecheck.yml": ["\nsource: version {version};"],
    "environment.yml": ["# tplrepro {version} for", "- python={python}\n"],
    # Its steps are what .ci/run does in a fresh clone.
    ".devcontainer/Dockerfile": [
        "\nFROM python:{python}-slim\n",
        'image.version="{version}"\n',
        "\nCOPY . .\nRUN make env\nCMD [",
    ],
    ".devcontainer/devcontainer.json": ['"name": "tplrepro {version}"', '/python:{python}"'],
    "recipe/recipe.yaml": ['\n  version: "{version}"\n', '\n  python_min: "{python}"\n'],
}


def test_the_version_and_the_least_python_are_the_same_wherever_they_are_stated():
    stated = {
        "version": PROJECT["version"],
        "python": PROJECT["requires-python"].removeprefix(">="),
    }
    for name, texts in STATED.items():
        assert [
            text for text in texts if text.format(**stated) not in (ROOT / name).read_text()
        ] == [], name


def test_the_recipe_for_conda_is_in_step_with_the_package():
    recipe = yaml.safe_load((ROOT / "recipe/recipe.yaml").read_text())
    extras = [line for extra in PROJECT["optional-dependencies"].values() for line in extra]
    for listed, wanted in (
        ("run", ["python>=${{ python_min }}", *PROJECT["dependencies"]]),
        ("run_constraints", extras),
    ):
        asked = [re.fullmatch(r"([^[>]*)(?:\[(.*)\])?(>=.*)", line).groups() for line in wanted]
        names = [
            f"{name} {least}"
            for package, extra, least in asked
            for name in (package, extra)
            if name
        ]
        assert sorted(recipe["requirements"][listed]) == sorted(names)
    assert recipe["build"]["python"]["entry_points"] == [
        f"{name} = {of}" for name, of in PROJECT["scripts"].items()
    ]
    assert {"license": PROJECT["license"], "summary": PROJECT["description"]}.items() <= recipe[
        "about"
    ].items()
