import pytest

from workflow.batch.fingerprint import fingerprint
from workflow.check_parameters import find_problems
from workflow.configuration import read_notebooks

ONLY = "the parameters cell may hold only 'name = literal' lines"


@pytest.fixture
def one(repository):
    """A repository with one notebook whose configuration is right."""
    repository.notebook("a/one", "print(value)")
    repository.configure("a/one: {quick: {value: 0.7}}")
    assert find_problems(repository.root) == []
    return repository


def test_this_repository_has_no_problem_and_the_notebooks_defaults_are_the_quick_profile():
    assert find_problems() == []
    for name, entry in read_notebooks().items():
        if entry.notebook == name:  # others are one notebook with several sets of parameters
            assert entry.parameters["quick"].items() <= entry.declared_parameters().items(), name


@pytest.mark.parametrize(
    ("source", "tag", "problem"),
    [
        *(
            (source, "parameters", ONLY)
            for source in ("import numpy", "a, b = 1, 2", "a: int", "a = 1\nb = 2 * a")
        ),
        ("value = 1", "other", "must have one cell tagged parameters, found 0; tag the cell"),
    ],
)
def test_the_error_for_a_wrong_parameters_cell_names_its_notebook(one, source, tag, problem):
    path = one.notebook("a/one", parameters=source)
    path.write_text(path.read_text().replace('"parameters"', f'"{tag}"'))
    (found,) = (words for words in find_problems(one.root) if "a/one.ipynb: " in words)
    assert problem in found


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        (
            "notebooks",
            "a/one: {paper: {va: 0}}",
            "notebooks.yaml: a/one: paper: there is no parameter 'va'; "
            "the parameters cell declares value, seed",
        ),
        (
            "notebooks",
            "a/one: {quick: {value: null}}",
            "a/one: quick: value must be a number, found None; its default is 0.5",
        ),
        (
            "notebooks",
            "a/one: {quick: {seed: 1.5}}",
            "seed must be a whole number, found 1.5; its default is 1",
        ),
        ("notebooks", "a/one: {quick: 7}", "a/one: quick: must be a mapping, found int; see"),
        (
            "profiles",
            "quick: {hours: 0}\npaper:",
            "profiles.yaml: quick: hours must be a positive number, found 0; correct it",
        ),
        ("profiles", "quick:\n", "PROFILE must be one of quick, found 'paper'; write"),
        ("profiles", "a: [", "profiles.yaml: must be YAML"),
        (
            "notebooks",
            "a/one: {timimg: true}",
            "a/one may say data, figure, notebook, parameters, timing, quick, paper, "
            "found timimg; correct it",
        ),
        (
            "notebooks",
            "a/one: {data: [kosarak, geolif]}",
            "gaze, geolife, gowalla, kosarak, found data 'geolif'; correct",
        ),
    ],
)
def test_mistakes_in_the_files_are_named_before_anything_runs(one, file, text, problem):
    one.configure(**({"notebooks": "a/one:"} | {file: text}))
    (found,) = find_problems(one.root)
    assert problem in found
    status, words = one.batch()
    assert (status, found in words) == (2, True)
    assert not (one.root / "build").exists()


def test_one_notebook_may_serve_several_figures_but_notebooks_and_configuration_name_the_same(one):
    two = "a/two: {notebook: a/one, parameters: {seed: 3}, quick: {value: 2}}"
    one.configure(f"a/one:\n{two}\n")
    assert find_problems(one.root) == []
    assert [fingerprint(*one.entry(name))["parameters"] for name in ("a/one", "a/two")] == [
        {},
        {"seed": 3, "value": 2},
    ]
    one.notebook("a/new")
    one.notebook("a/.ipynb_checkpoints/one-checkpoint")  # is no notebook
    one.configure("a/one:\na/gone:")
    assert find_problems(one.root) == [
        "notebooks.yaml: lists a/gone, which is not in notebooks/; write it or remove the line",
        "notebooks.yaml: does not list notebooks/a/new.ipynb; add the line 'a/new:'",
    ]
