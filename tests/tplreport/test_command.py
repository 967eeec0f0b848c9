"""Each job from the command line, and mistakes in the words that were typed."""

import gc
import io
import json
import os
import re
import subprocess
import sys
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import tplfrontier as tf
import tplreport as tr
import tplrepro as tpl
from tplreport import address_space, command
from tplreport.reporting.believable import JudgedChain
from workflow.configuration import ROOT

P = [[0.8, 0.2], [0.1, 0.9]]
pytestmark = pytest.mark.filterwarnings(
    "always::tplreport.publishing.publisher.RepeatedTimeWarning"
)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs the command in a folder with a matrix and counts; gives the exit status, what it prints,
    and its errors."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "moves.csv").write_text("home,work\n0.8,0.2\n0.1,0.9\n")
    (tmp_path / "soon.csv").write_text("home,work\n0.6,0.4\n0.3,0.7\n")
    (tmp_path / "counts.csv").write_text(
        "hour,time,home,work\n8,2024-05-01 08:00,105,98\n9,2024-05-01 09:00,99,104\n"
    )

    def run(*words, stdin=""):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        status = command.main([str(word) for word in words])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


NEW = ("--matrix", "moves.csv", "--alpha", 1, "--sensitivity", 2, "--floor", 0.1, "--step", "1h")
REPORTED = ("report", "counts.csv", "--alpha", 1, "--horizon", 2)
REPORTED += ("--user", "none", "--state", "home")


def test_a_command_looks_for_unreachable_objects_as_often_as_before_once_it_is_done(run):
    before = gc.get_threshold()
    seen = []

    def note(*_):
        seen.append(gc.get_threshold())

    with mock.patch.object(command, "_check_outputs", note):
        assert run("leakage", "--matrix", "nowhere.csv", "--budgets", "1")[0] == 2
    assert seen == [(command.NEW_OBJECTS, *before[1:])]
    assert gc.get_threshold() == before


def test_every_option_has_help_and_every_subcommand_its_exit_status(capsys):
    for name in ("leakage", "budgets", "report", "publish", "ledger", "smooth"):
        with pytest.raises(SystemExit) as ended:
            command.main([name, "--help"])
        printed = capsys.readouterr().out
        assert ended.value.code == 0
        assert "exit status: 0 done; 2" in printed.replace("\n", " ")
        assert "--json" in printed
    parser = command._parser()
    for subcommand in parser._subparsers._group_actions[0].choices.values():
        assert [action.dest for action in subcommand._actions if not action.help] == []


def test_the_leakage_of_a_matrix_is_that_of_the_package(run, tmp_path):
    status, printed, _ = run(
        "leakage", "--matrix", "moves.csv", "--epsilon", 0.1, "--horizon", 3, "--json"
    )
    moves = tpl.TransitionMatrix(P)
    expected = tpl.temporal_privacy_leakage([0.1] * 3, moves.reverse(moves.stationary()), moves)
    assert status == 0
    assert [row["tpl"] for row in json.loads(printed)] == pytest.approx(expected.tpl.tolist())
    (tmp_path / "named.csv").write_text("from,home,work\nhome,0.8,0.2\nwork,0.1,0.9\n")
    (tmp_path / "budgets.csv").write_text("time,epsilon\n0,0.1\n1,0.1\n2,0.1\n")
    words = (
        "leakage",
        "--matrix",
        "named.csv",
        "--backward",
        "moves.csv",
        "--budgets",
        "budgets.csv",
    )
    assert run(*words, "--csv", "out.csv", "--plot", "out.svg")[0] == 0
    expected = tpl.temporal_privacy_leakage([0.1] * 3, P, P)
    assert pd.read_csv("out.csv")["tpl"].tolist() == pytest.approx(expected.tpl.tolist())
    assert (tmp_path / "out.svg").stat().st_size > 5000


@pytest.mark.parametrize("scheme", command.SCHEME_NAMES)
def test_budgets_keep_alpha(run, scheme):
    words = (
        "budgets",
        "--matrix",
        "moves.csv",
        "--alpha",
        1,
        "--horizon",
        5,
        "--scheme",
        scheme,
        "--json",
    )
    status, printed, _ = run(*words)
    budgets = [row["epsilon"] for row in json.loads(printed)]
    moves = tpl.TransitionMatrix(P)
    worst = tpl.temporal_privacy_leakage(
        budgets, moves.reverse(moves.stationary()), moves
    ).tpl.max()
    assert (status, len(budgets)) == (0, 5)
    assert (0.4 if scheme in ("composed", "constant") else 0.99) < worst <= 1.0


def test_budgets_for_data_keep_alpha_for_chains_that_the_data_leave_possible(run, tmp_path):
    rng = np.random.default_rng(0)
    rows = [(f"p{who}", day, int(rng.integers(2))) for who in range(30) for day in range(60)]
    pd.DataFrame(rows, columns=["user", "time", "state"]).to_csv("visits.csv", index=False)
    status, printed, _ = run(
        "budgets", "--data", "visits.csv", "--alpha", 1, "--horizon", 5, "--json"
    )
    budgets = [row["epsilon"] for row in json.loads(printed)]
    pair = JudgedChain.of(tr.read_sequences("visits.csv")).upper_pair(0.95)
    assert status == 0
    assert 0.9 < tpl.temporal_privacy_leakage(budgets, *pair).tpl.max() <= 1.0


def test_publishing_again_gives_the_same_values_and_keeps_times_and_whole_numbers(run):
    (words := ["publish", "own.sqlite", "counts.csv", "--csv", "noisy.csv"])
    status, printed, errors = run(*words, *NEW)
    assert status == 0
    assert "noise was added to hour, home, work, and not to time" in errors
    first = pd.read_csv("noisy.csv", index_col="time")
    assert (first.index.tolist(), [*first.dtypes]) == (
        ["2024-05-01 08:00", "2024-05-01 09:00"],
        [np.int64] * 3,
    )
    status, _, errors = run(*words)
    assert status == 0
    assert "publish: warning: 2 of 2 times were handed out before: the same values" in errors
    pd.testing.assert_frame_equal(pd.read_csv("noisy.csv", index_col="time"), first)
    status, printed, _ = run(
        "publish", "own.sqlite", "-", "--json", stdin="2024-05-01 10:00,10,100,99\n"
    )
    assert status == 0
    assert json.loads(printed)[0]["time"] == "2024-05-01 10:00"
    assert (
        run(
            "publish",
            "own.sqlite",
            "--skip",
            "2024-05-01 11:00",
            "--skip-until",
            "2024-05-02 11:00",
        )[0]
        == 0
    )
    status, printed, _ = run("ledger", "own.sqlite", "--json", "--backup", "copy.sqlite")
    assert [(row["count"], row["epsilon"], row["kind"]) for row in json.loads(printed)] == [
        *[(1, 0.1, "published")] * 3,
        (25, 0.0, "skipped"),
    ]
    assert len(tr.Publisher("copy.sqlite")) == 28
    assert len(json.loads(run("ledger", "own.sqlite", "--leakage", "--json")[1])) == 28
    assert len(json.loads(run("ledger", "own.sqlite", "--noisy", "--json")[1])) == 3


def test_numbered_rows_keep_a_column_of_labels_that_are_no_times(run, tmp_path):
    (tmp_path / "counts.csv").write_text("Datum;Zahl\nMo;1,5\nDi;2,5\n")
    words = ("publish", "own.sqlite", "counts.csv", *NEW[:-2], "--time-column", "Datum")
    status, _, errors = run(*words)
    assert status == 2
    assert "times must be whole numbers or dates, found 'Mo'" in errors
    status, printed, errors = run(*words, "--numbered", "--json")
    assert status == 0
    assert "noise was added to Zahl, and not to Datum" in errors
    assert [row["Datum"] for row in json.loads(printed)] == ["Mo", "Di"]


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (
            ["publish", "own.sqlite", "counts.csv", *NEW, "--epsilon", 0.9],
            4,
            "epsilon must be at most 0.7567",
        ),
        (
            ["publish", "none.sqlite", "counts.csv"],
            2,
            "there must be a publisher's file .*none.sqlite, found none",
        ),
        (["publish", "own.sqlite", "counts.csv", *NEW[:-2]], 2, r"make it with --step$"),
        (
            ["publish", "own.sqlite", "counts.csv", *NEW, "--alpha", 30],
            2,
            "give 20, or --allow-large$",
        ),
        (
            ["publish", "own.sqlite", "counts.csv", *NEW, "--time-column", "t"],
            2,
            "a column of times 't', found hour",
        ),
        (
            ["leakage", "--matrix", "moves.csv"],
            2,
            "budgets must be --epsilon with --horizon, or --budgets, found none; give one$",
        ),
        (
            ["leakage", "--matrix", "moves.csv", "--epsilon", 1, "--budgets", "b.csv"],
            2,
            "or --budgets, found --epsilon and --budgets; give one$",
        ),
        (
            [*REPORTED, "--same-time", "last one"],
            2,
            "report: --same-time must be one of 'first', 'last', 'rows', found 'last one'; choose",
        ),
        (
            [*REPORTED, "--step", "1h", "--max-gap", 0],
            2,
            "report: --max-gap must be a positive duration",
        ),
        (
            [*REPORTED, "--time-unit", "d"],
            2,
            "report: --time-unit must be one of .*, found 'd'; choose one$",
        ),
        (
            ["leakage", "--epsilon", 1, "--horizon", 2],
            2,
            "must be that of --matrix or --data, found none; give one$",
        ),
        (
            ["budgets", "--matrix", "a", "--data", "b", "--alpha", 1, "--horizon", 2],
            2,
            "must be that of --matrix or --data, found --matrix and --data; give one$",
        ),
        (["leakage", "--matrix", "none.csv", "--epsilon", 1, "--horizon", 2], 2, "none.csv"),
        (["leakage", "--matrix", "counts.csv", "--epsilon", 1, "--horizon", 2], 2, "found"),
        (["ledger", "counts.csv"], 2, "file is not a database"),
        (
            ["leakage", "--matrix", "none.csv", "--epsilon", 1, "--horizon", 2],
            2,
            "--matrix must be a file that can be used, found none at none.csv; check its name$",
        ),
        (
            ["leakage", "--matrix", "moves.csv", "--epsilon", 1, "--horizon", 2, "--start", "work"],
            2,
            "--start must be habit, any or a file that can be used, found none at work",
        ),
        (
            ["publish", "own.sqlite", "counts.csv", *NEW, "--floor", "low"],
            2,
            "--floor must be a number, largest or a file that can be used, found none at low",
        ),
        (
            ["publish", "own.sqlite", "none.csv", *NEW],
            2,
            "publish: counts must be a file that can be used, found none at none.csv",
        ),
        (
            ["leakage", "--matrix", "moves.csv", "--epsilon", 1],
            2,
            "--epsilon is the budget of each of several releases, found no --horizon; give how",
        ),
        (
            ["publish", "own.sqlite", "counts.csv", *NEW, "--floor", 0.9],
            2,
            "floor must keep the TPL within .*; give less, or --floor largest$",
        ),
        (
            ["publish", "none.sqlite", "counts.csv"],
            2,
            "or make one by tplrepro publish with --alpha and a chain$",
        ),
    ],
)
def test_mistakes_are_named_in_the_words_that_were_typed(run, words, status, message):
    found, printed, errors = run(*words)
    assert (found, printed) == (status, "")
    assert re.search(message, errors.strip()), errors
    assert re.search(r"\b(?!--)[a-z_]+=", errors) is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["leakage", "--matrix", "moves.csv", "--epsilon", "0,1", "--horizon", 3],
            "leakage: argument --epsilon: must be a number such as 0.1, with a decimal point, "
            "found '0,1'; tplrepro leakage --help says more",
        ),
        (
            ["budgets", "--alpha", 1, "--horizon", "3.5"],
            "budgets: argument --horizon: must be a whole number such as 30, found '3.5'; tplrepro "
            "budgets --help says more",
        ),
        (
            ["budgets", "--matrix", "moves.csv"],
            "budgets: the following arguments are required: --alpha, --horizon; tplrepro budgets "
            "--help says more",
        ),
    ],
)
def test_what_cannot_be_an_option_is_told_in_a_line(run, capsys, words, message):
    with pytest.raises(SystemExit) as ended:
        run(*words)
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"tplrepro {message}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("home,50\nwork,50\n",
         "start.csv: --start must be non-negative and sum to 1 .*, found sum 100 .*; divide it by "
         "its sum$"),
        ("home,0.5\nwork,0.4\n", "start.csv: --start must .*, found sum 0.9 .* by its sum$"),
    ],
)  # fmt: skip
def test_a_law_that_is_none_is_named_by_its_file(run, tmp_path, text, message):
    (tmp_path / "start.csv").write_text(text)
    words = ("leakage", "--matrix", "moves.csv", "--epsilon", 1, "--horizon", 2)
    status, printed, errors = run(*words, "--start", "start.csv")
    assert (status, printed) == (2, "")
    assert re.search(message, errors.strip()), errors


@pytest.mark.parametrize("start", ["any", "law.csv"])
def test_why_a_start_that_is_never_forgotten_needs_the_backward_side(run, tmp_path, start):
    (tmp_path / "still.csv").write_text("1,0\n0,1\n")
    (tmp_path / "law.csv").write_text("0.3\n0.7\n")
    words = ("leakage", "--matrix", "still.csv", "--epsilon", 1, "--horizon", 2)
    status, printed, errors = run(*words, "--start", start)
    assert (status, printed) == (2, "")
    assert errors == (
        f"tplrepro leakage: --start {start} needs a chain that forgets how it began, found 2 "
        "closed classes of states (one holds 0, another 1); give --backward, or smooth the matrix\n"
    )
    assert run(*words, "--backward", "still.csv")[0] == 0


@pytest.mark.parametrize("target", ["a.foo", "a", "a.png.csv"])
def test_a_plot_of_another_kind_is_refused_before_anything_is_written(run, tmp_path, target):
    """It was after the table, in the words of Matplotlib; a name without an end got one."""
    words = ("leakage", "--matrix", "moves.csv", "--epsilon", 1, "--horizon", 2)
    status, printed, errors = run(*words, "--csv", "leakage.csv", "--plot", target)
    assert (status, printed) == (2, "")
    assert (
        f"--plot must end in .png, .svg, .pdf or another kind of picture, found {target}" in errors
    )
    assert not (tmp_path / "leakage.csv").exists()
    assert run("publish", "own.sqlite", "counts.csv", *NEW)[0] == 0
    status, printed, errors = run("smooth", "own.sqlite", "--no-chain", "--plot", target)
    assert (status, printed, "--plot must end in" in errors) == (2, "", True)


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("report", "none.csv", "--alpha", 1, "--horizon", 3), "--html"),
        (("report", "none.csv", "--alpha", 1, "--horizon", 3), "--budgets"),
        (("budgets", "--matrix", "none.csv", "--alpha", 1, "--horizon", 3), "--csv"),
        (("budgets", "--matrix", "none.csv", "--alpha", 1, "--horizon", 3), "--plot"),
    ],
)
def test_a_folder_in_place_of_a_file_is_named_before_anything_is_read(run, tmp_path, words, option):
    """It was named by a partial file beside it, when all was done."""
    (tmp_path / "pages").mkdir()
    status, printed, errors = run(*words, option, "pages")
    assert (status, printed) == (2, "")
    assert f": {option} must be a file, found the folder pages; give the name of" in errors


def test_a_file_that_cannot_be_written_is_named_as_it_was_typed(run, tmp_path):
    words = ("leakage", "--matrix", "moves.csv", "--epsilon", 1, "--horizon", 2)
    partial = str(tmp_path / ".out.csvx7.partial")
    error = PermissionError(13, "Permission denied", partial)
    with mock.patch("tempfile.mkstemp", side_effect=error):
        status, _, errors = run(*words, "--csv", "out.csv")
    assert status == 2
    assert ": --csv must be a file that can be used, found Permission denied (out.csv);" in errors


def test_a_plot_is_written_into_a_new_folder(run, tmp_path):
    words = ("leakage", "--matrix", "moves.csv", "--epsilon", 1, "--horizon", 2)
    status, _, errors = run(*words, "--plot", "new/leakage.png")
    assert (status, errors) == (0, "")
    assert (tmp_path / "new" / "leakage.png").stat().st_size > 0


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        ("Hour,home\n8,105\n", (), "found 'Hour', which .* give --time-column 'Hour', or --numb"),
        (",home\n0,105\n", (), "name above each column, found none above column 1; write time"),
        ('"home",""\n105,1\n', (), "name above each column, found none above column 2"),
        (
            "home,work\n105,98\n",
            ("--step", "1h"),
            "need a column of times, as releases are 1h apart, found 'home', 'work'; name it",
        ),
        ("Zeit;home\n1.5.;105\n", (), "in a row for each time, .* or by --time-column$"),
    ],
)
def test_a_column_of_times_gets_no_noise_unasked(run, tmp_path, text, words, message):
    (tmp_path / "odd.csv").write_text(text)
    status, printed, errors = run("publish", "own.sqlite", "odd.csv", *NEW[:-2], *words)
    assert (status, printed) == (2, "")
    assert re.search(message, errors.strip()), errors
    assert not (tmp_path / "own.sqlite").exists()


def test_a_column_that_may_be_of_times_is_a_count_where_that_is_said(run, tmp_path):
    (tmp_path / "odd.csv").write_text("Hour,home\n8,105\n9,99\n")
    words = ("publish", "own.sqlite", "odd.csv", *NEW[:-2])
    status, _, errors = run(*words, "--time-column", "Hour")
    assert (status, "noise was added to home, and not to Hour" in errors) == (0, True)
    words = ("publish", "other.sqlite", "odd.csv", *NEW[:-2])
    status, _, errors = run(*words, "--numbered")
    assert (status, "noise was added to Hour, home" in errors) == (0, True)
    assert run("publish", "other.sqlite", "odd.csv")[0] == 0  # known by now


def test_a_restored_file_names_the_option_that_goes_on(run, tmp_path):
    run("publish", "own.sqlite", "counts.csv", *NEW)
    content = (tmp_path / "own.sqlite").read_bytes()
    (tmp_path / "own.sqlite").unlink()
    (tmp_path / "own.sqlite").write_bytes(content)
    status, _, errors = run("publish", "own.sqlite", "--skip", "2024-05-01 10:00")
    assert status == 2
    assert "or publish with --resume and the last time that may have been published" in errors
    assert errors.endswith("or --resume alone if none was\n")


@pytest.mark.parametrize("error", [    MemoryError(),
    MemoryError("Unable to allocate 36.7 MiB for an array"),
    ImportError("lib.so: failed to map segment from shared object"),
    RuntimeError("can't start new thread"),
])  # fmt: skip
def test_too_little_memory_is_told_in_a_line(run, monkeypatch, error):
    monkeypatch.setattr(tr, "read_sequences", mock.Mock(side_effect=error))
    status, printed, told = run("report", "counts.csv", "--alpha", 1, "--horizon", 3)
    assert (status, printed) == (command.WRONG, "")
    assert (
        told
        == "tplrepro report: more memory is needed than there is; raise its limit (ulimit -v)\n"
    )


def test_a_limit_that_is_too_little_is_told(run, monkeypatch):
    monkeypatch.setattr(tr, "read_sequences", mock.Mock(side_effect=MemoryError()))
    monkeypatch.setattr(address_space, "limit_of_address_space", lambda: 600)
    monkeypatch.setattr(command, "spare_address_space", lambda: None)
    status, printed, told = run("report", "counts.csv", "--alpha", 1, "--horizon", 3)
    assert (status, printed) == (command.WRONG, "")
    assert told == (
        "tplrepro report: more address space is needed than its limit allows, found 600 MiB; "
        "raise it (ulimit -v)\n"
    )


@pytest.mark.parametrize("fault", [RuntimeError("a fault"), NotImplementedError()])
def test_a_fault_of_the_program_keeps_its_traceback(run, fault):
    with (
        mock.patch.object(tr, "read_sequences", side_effect=fault),
        pytest.raises(type(fault), match=f"^{fault}"),
    ):
        run("report", "counts.csv", "--alpha", 1, "--horizon", 3)


@pytest.mark.parametrize(
    "words",
    [
        ("publish", "own.sqlite", "counts.csv", "--csv", "counts.csv"),
        ("publish", "own.sqlite", "counts.csv", "--csv", "./linked.csv"),
        ("publish", "own.sqlite", "counts.csv", "--csv", "own.sqlite"),
        ("ledger", "own.sqlite", "--csv", "own.sqlite"),
        ("ledger", "own.sqlite", "--csv", "hard.sqlite"),
        ("ledger", "own.sqlite", "--csv", "own.sqlite.mark"),
        ("publish", "own.sqlite", "counts.csv", "--csv", "own.sqlite-journal"),
        ("publish", "own.sqlite", "counts.csv", "--csv", "witness", "--witness", "witness"),
        ("ledger", "own.sqlite", "--csv", "new.csv", "--backup", "new.csv"),
        ("leakage", "--matrix", "moves.csv", "--budgets", "b.csv", "--csv", "b.csv"),
        ("leakage", "--matrix", "moves.csv", "--budgets", "b.csv", "--plot", "moves.csv"),
        ("report", "counts.csv", "--alpha", 1, "--horizon", 3, "--budgets", "counts.csv"),
        ("report", "counts.csv", "--alpha", 1, "--horizon", 3, "--html", "counts.csv"),
    ],
)
def test_what_is_read_is_not_written_over(run, tmp_path, words):
    assert run("publish", "own.sqlite", *NEW)[0] == 0
    (tmp_path / "b.csv").write_text("epsilon\n0.1\n0.1\n")
    (tmp_path / "linked.csv").symlink_to("counts.csv")
    (tmp_path / "hard.sqlite").hardlink_to("own.sqlite")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    status, printed, errors = run(*words)
    assert (status, printed) == (2, "")
    assert re.search("must spare .*, found the same file; take another name$", errors.strip())
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("1,0\n0,1\n", [[1, 0], [0, 1]]),
        ("0,8;0,2\n0,1;0,9\n", P),
        ("# moves\n0.8,0.2\n0.1,0.9\n", P),
    ],
)
def test_a_matrix_without_names_is_read_whole(run, tmp_path, text, rows):
    """Its first line was taken for names, and one state leaks nothing more than the budget."""
    (tmp_path / "own.csv").write_text(text)
    words = ("--backward", "own.csv", "--epsilon", 0.1, "--horizon", 10, "--json")
    status, printed, _ = run("leakage", "--matrix", "own.csv", *words)
    expected = tpl.temporal_privacy_leakage([0.1] * 10, rows, rows)
    assert status == 0
    assert [row["tpl"] for row in json.loads(printed)] == pytest.approx(expected.tpl.tolist())


def test_budgets_without_a_heading_are_all_read(run, tmp_path):
    """The first was taken for the name of the column."""
    (tmp_path / "budgets.csv").write_text("2.0\n0.1\n0.1\n")
    words = ("leakage", "--matrix", "moves.csv", "--budgets", "budgets.csv", "--json")
    status, printed, _ = run(*words)
    rows = json.loads(printed)
    assert (status, [row["epsilon"] for row in rows]) == (0, [2.0, 0.1, 0.1])
    assert max(row["tpl"] for row in rows) > 2.0


@pytest.mark.parametrize(
    ("heading", "said"),
    [
        ("t,α/T,recommended: equal", "budgets are those of the column 'recommended: equal' in "),
        ("t,epsilon,recommended: equal", ""),
    ],
)
def test_budgets_that_a_report_recommends_are_named(run, tmp_path, heading, said):
    (tmp_path / "budgets.csv").write_text(f"{heading}\n1,0.1,0.2\n2,0.1,0.2\n")
    words = ("leakage", "--matrix", "moves.csv", "--budgets", "budgets.csv")
    status, printed, errors = run(*words, "--json")
    budgets = {row["epsilon"] for row in json.loads(printed)}
    assert (status, budgets) == (0, {0.2 if said else 0.1})
    assert errors == (f"{said}budgets.csv\n" if said else "")


def test_the_help_says_which_column_of_budgets_is_read(run, capsys):
    with pytest.raises(SystemExit):
        run("leakage", "--help")
    said = " ".join(capsys.readouterr().out.split())
    assert "the column epsilon, or without it the one that begins with 'recommended: '" in said


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        ("--matrix", "0,1\n0.8,0.2\n0.1,0.9\n", "own.csv: the first line must be names or prob"),
        (
            "--matrix",
            "1,0\n0,1\n",
            "closed classes of states (one holds 0, another 1); give --backward",
        ),
        ("--budgets", "2,0\n0,1\n0,1\n", "own.csv: each of several columns must have a heading"),
        ("--budgets", "noise_multiplier\n7\n7\n", "own.csv: there must be one column epsilon"),
    ],
)
def test_an_ambiguous_text_is_refused(run, tmp_path, option, text, message):
    (tmp_path / "own.csv").write_text(text)
    (tmp_path / "budgets.csv").write_text("0.1\n0.1\n")
    files = {"--matrix": "moves.csv", "--budgets": "budgets.csv"} | {option: "own.csv"}
    status, printed, errors = run("leakage", *(word for pair in files.items() for word in pair))
    assert (status, printed) == (2, "")
    assert message in errors


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (NEW[:-4], 2, "found none; give --floor, --plan, or --delta and --burst"),
        ((*NEW, "--epsilon", 0.9), 4, "epsilon must be at most"),
        (NEW[:-2], 2, "make it with --step"),
        ((*NEW, "--time-column", "t"), 2, "a column of times 't'"),
        ((*NEW, "--sensitivity", 1.5), 2, "must be a whole number"),
        ((*NEW, "--skip", "2024-05-01 07:00", "--epsilon", 0.9), 4, "epsilon must be at most"),
    ],
)
def test_a_refused_command_leaves_no_file_behind(run, tmp_path, words, status, message):
    before = {path.name for path in tmp_path.iterdir()}
    found, printed, errors = run("publish", "own.sqlite", "counts.csv", *words)
    assert (found, printed) == (status, "")
    assert message in errors
    assert {path.name for path in tmp_path.iterdir()} == before
    assert run("publish", "own.sqlite", "counts.csv", *NEW)[0] == 0


def test_a_refused_command_leaves_a_file_that_was_there(run, tmp_path):
    assert run("publish", "own.sqlite", *NEW)[0] == 0
    assert run("publish", "own.sqlite", "counts.csv", "--epsilon", 0.9)[0] == 4
    assert run("publish", "own.sqlite", "counts.csv")[0] == 0


@pytest.mark.parametrize(
    "words",
    [
        ("--matrix", "other.csv"),
        ("--matrix", "moves.csv", "--backward", "other.csv"),
        ("--matrix", "moves.csv", "--backward", "none.csv"),
        ("--backward", "moves.csv"),
        ("--plan", "plan.csv"),
        ("--step", "2h"),
        ("--floor", 0.2),
        ("--alpha", 2),
        ("--sensitivity", 1),
        ("--delta", 1e-6),
        ("--data", "visits.csv"),
        ("--user", "who"),
        ("--confidence", 0.9),
        ("--anyway",),
        ("--data-step", "1h"),
    ],
)
def test_options_for_a_file_that_exists_are_compared_or_refused(run, tmp_path, words):
    (tmp_path / "other.csv").write_text("home,work\n0.7,0.3\n0.1,0.9\n")
    (tmp_path / "plan.csv").write_text("epsilon\n0.1\n0.1\n")
    (tmp_path / "visits.csv").write_text("user,time,state\na,1,home\na,2,work\na,3,home\n")
    assert run("publish", "own.sqlite", "counts.csv", *NEW)[0] == 0
    assert run("publish", "own.sqlite", "counts.csv", *NEW)[0] == 0  # as it was made
    status, printed, errors = run("publish", "own.sqlite", "counts.csv", *words)
    assert (status, printed) == (2, "")
    assert str(words[-2 if len(words) > 1 else 0]) in errors or "none.csv" in errors


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("publish", "own.sqlite", "--epsilon", 0.1), "--epsilon belongs to counts, found none"),
        (("publish", "own.sqlite", "--csv", "noisy.csv"), "--csv belongs to counts"),
        (("publish", "own.sqlite", "--skip-until", "2024-05-02"), "belongs to skip"),
        (("ledger", "own.sqlite", "--leakage", "--noisy"), "found --leakage and --noisy"),
        (("leakage", "--matrix", "moves.csv", "--epsilon", 1, "--horizon", 2, "--user", "u"),
         "--user belongs to data, found none; give --data, or leave --user out"),
        (("budgets", "--data", "visits.csv", "--backward", "moves.csv",
          "--alpha", 1, "--horizon", 2),
         "--backward belongs to matrix"),
    ],
)  # fmt: skip
def test_no_option_is_ignored(run, words, message):
    assert run("publish", "own.sqlite", *NEW)[0] == 0
    status, printed, errors = run(*words)
    assert (status, printed) == (2, "")
    assert message in errors


def visits_of(habits, path, days=80):
    """A CSV file of people with these habits (users, 2, 2)."""
    rng = np.random.default_rng(5)
    rows = []
    for who, matrix in enumerate(habits):
        places = tpl.TransitionMatrix(matrix).sample(days, rng=rng)
        rows += [(f"p{who}", day, place) for day, place in enumerate(places)]
    pd.DataFrame(rows, columns=["user", "time", "state"]).to_csv(path, index=False)


DIFFERENT = [[[0.9, 0.1], [0.1, 0.9]], [[0.2, 0.8], [0.8, 0.2]]] * 10


@pytest.mark.filterwarnings("default:do not rely on the chain")
def test_publishing_makes_the_same_checks_of_data_as_a_report(run, tmp_path):
    visits_of(DIFFERENT, "visits.csv")
    words = ("publish", "own.sqlite", "counts.csv", "--data", "visits.csv", "--alpha", 1)
    words += ("--sensitivity", 2, "--step", "1h")
    status, printed, errors = run(*words, "--floor", 0.05)
    assert (status, printed) == (command.WITHHELD, "")
    assert "differences between users is doubtful: users have habits of their own" in errors
    assert not (tmp_path / "own.sqlite").exists()
    assert run(*words, "--floor", 0.05, "--anyway")[0] == 0
    (tmp_path / "own.sqlite").unlink()
    (tmp_path / "own.sqlite.mark").unlink()
    report = ("report", "visits.csv", "--alpha", 1, "--horizon", 2, "--draws", 0)
    assert run(*report, "--budgets", "plan.csv")[0] == 0
    status, _, errors = run(*words, "--plan", "plan.csv")  # alpha/T
    assert (status, "differences" in errors) == (0, False)
    status, _, errors = run("leakage", "--data", "visits.csv", "--epsilon", 0.1, "--horizon", 3)
    assert status == 0
    assert "warning: do not rely on the chain of the data: differences between users is" in errors


@pytest.mark.filterwarnings("ignore:1,540 of 1,600 rows")
def test_hours_are_published_by_hours_of_observations_and_not_by_days(run, tmp_path):
    """The chain is that of a report, and its step that of the releases."""
    visits_of([P] * 20, "visits.csv")
    frame = pd.read_csv("visits.csv")
    numbers = frame["time"]
    frame["time"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(numbers, "h")
    frame.to_csv("visits.csv", index=False)
    words = ("publish", "own.sqlite", "counts.csv", "--data", "visits.csv", "--alpha", 1)
    words += ("--sensitivity", 2, "--step", "1h", "--floor", 0.05)
    status, _, errors = run(*words, "--data-step", "2D")
    assert status == 2
    assert "found --data-step 2D and --step 1h; give --step 2D, or give --data-step 1h" in errors
    by_two_hours = tuple("2h" if word == "1h" else word for word in words)
    status, _, errors = run(*by_two_hours)
    assert "observations 1 hour apart and --step 2h; give --step 1h, or give --data-step 2h" in (
        errors
    )
    assert run(*words)[0] == 0
    pair = JudgedChain.of(tr.read_sequences("visits.csv")).upper_pair(0.95)
    sides = dict(zip(("backward", "forward"), pair, strict=True))
    same = {"alpha": 1.0, "sensitivity": 2, "step": "1h", "floor": 0.05}
    assert len(tr.Publisher("own.sqlite", **sides, **same)) == 2
    frame["time"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(numbers, "D")
    frame.to_csv("days.csv", index=False)
    by_days = ("publish", "days.sqlite", *words[2:])
    by_days = tuple("days.csv" if word == "visits.csv" else word for word in by_days)
    status, _, errors = run(*by_days)
    assert status == 2
    assert "found observations 1 day apart and --step 1h; give --step 1D" in errors
    assert not (tmp_path / "days.sqlite").exists()


def test_releases_count_from_1_and_dates_stay_dates(run, tmp_path):
    words = ("--matrix", "moves.csv", "--alpha", 1, "--horizon", 3)
    assert run("budgets", *words, "--csv", "budgets.csv")[0] == 0
    assert pd.read_csv("budgets.csv")["t"].tolist() == [1, 2, 3]
    assert run("leakage", "--matrix", "moves.csv", "--budgets", "budgets.csv")[0] == 0
    assert run("publish", "own.sqlite", "counts.csv", *NEW)[0] == 0
    assert run("publish", "own.sqlite", "--skip", "2024-05-01 10:00")[0] == 0
    assert run("ledger", "own.sqlite", "--leakage", "--csv", "leakage.csv")[0] == 0
    found = pd.read_csv("leakage.csv", parse_dates=["time"])
    assert found["time"].tolist() == [pd.Timestamp(f"2024-05-01 {hour}:00") for hour in (8, 9, 10)]
    assert run("publish", "rows.sqlite", "counts.csv", *NEW[:-2], "--numbered")[0] == 0
    assert tr.Publisher("rows.sqlite").ledger["time"].tolist() == [1, 2]
    assert run("publish", "rows.sqlite", "counts.csv", "--numbered")[0] == 0


def test_rows_of_a_file_that_counts_from_0_go_on_from_there(run, tmp_path):
    settings = {"alpha": 1.0, "sensitivity": 2, "floor": 0.1}
    made = tr.Publisher("own.sqlite", backward=None, forward=P, **settings)
    counts = pd.read_csv("counts.csv")[["home", "work"]]
    noisy = made.publish_table(counts)
    status, _, _ = run("publish", "own.sqlite", "counts.csv", "--numbered", "--csv", "noisy.csv")
    assert status == 2  # hour is another column
    counts.to_csv("counts.csv", index=False)
    assert run("publish", "own.sqlite", "counts.csv", "--csv", "noisy.csv")[0] == 0
    assert pd.read_csv("noisy.csv").equals(noisy.reset_index(drop=True))


def test_other_publishers_and_a_stored_witness_are_not_written_over(run, tmp_path):
    assert run("publish", "own.sqlite", *NEW, "--witness", "own.witness")[0] == 0
    assert run("publish", "other.sqlite", *NEW)[0] == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for option in ("--csv", "--backup"):
        for target, message in (
            ("own.witness", "must spare .*own.witness, found the same file"),
            ("other.sqlite", "other.sqlite is the file or the mark of a publisher"),
            ("other.sqlite.mark", "other.sqlite.mark is the file or the mark of a publisher"),
        ):
            status, printed, errors = run("ledger", "own.sqlite", option, target)
            assert (status, printed) == (2, "")
            assert re.search(message, errors)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("target", ["own.sqlite", "own.sqlite.mark", "own.witness", "backup"])
@pytest.mark.parametrize("option", ["--csv", "--html", "--budgets"])
def test_commands_without_a_publisher_write_over_none(run, tmp_path, option, target):
    """They did, over its file, its marks and its backups."""
    assert run("publish", "own.sqlite", "counts.csv", *NEW, "--witness", "own.witness")[0] == 0
    assert run("ledger", "own.sqlite", "--backup", "backup")[0] == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    words = ("report", "counts.csv", "--alpha", 1, "--horizon", 3, option, target)
    if option == "--csv":
        words = ("budgets", "--matrix", "moves.csv", "--alpha", 1, "--horizon", 3, option, target)
    status, printed, errors = run(*words)
    assert (status, printed) == (2, "")
    assert re.search("of a publisher, and must stay; take another name$", errors.strip())
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_table_is_not_written_over_a_backup(run, tmp_path):
    assert run("publish", "own.sqlite", "counts.csv", *NEW)[0] == 0
    assert run("ledger", "own.sqlite", "--backup", "backup")[0] == 0
    before = (tmp_path / "backup").read_bytes()
    status, _, errors = run("ledger", "own.sqlite", "--csv", "backup")
    assert status == 2
    assert "backup is a database, such as a backup of a publisher, and must stay" in errors
    assert (tmp_path / "backup").read_bytes() == before


def test_rows_are_not_numbered_where_times_are_dates(run):
    """It ended in a TypeError of pandas."""
    assert run("publish", "own.sqlite", "counts.csv", *NEW)[0] == 0
    status, printed, errors = run("publish", "own.sqlite", "counts.csv", "--numbered")
    assert (status, printed) == (2, "")
    assert re.search("times must be dates as before, .*, and leave --numbered out", errors)


@pytest.mark.parametrize("command", ["publish", "ledger"])
def test_a_witness_that_the_file_does_not_have_is_not_ignored(run, command):
    """It was, where nothing is published: who gave it thought that there was one."""
    assert run("publish", "own.sqlite", "counts.csv", *NEW)[0] == 0
    status, printed, errors = run(command, "own.sqlite", "--witness", "b.witness")
    assert (status, printed) == (2, "")
    assert re.search("the witness of .*own.sqlite must be none, found .*b.witness", errors)
    assert run("publish", "own.sqlite", "--resume", "--witness", "b.witness")[0] == 0
    assert run(command, "own.sqlite", "--witness", "b.witness")[0] == 0


def test_a_witness_is_named_once(run):
    assert run("publish", "own.sqlite", "counts.csv", *NEW, "--witness", "own.witness")[0] == 0
    assert run("publish", "own.sqlite", "--skip", "2024-05-01 10:00")[0] == 0
    status, _, errors = run(
        "publish", "own.sqlite", "--skip", "2024-05-01 11:00", "--witness", "b.witness"
    )
    assert status == 2
    assert re.search("witness of .*own.sqlite must be .*own.witness, found .*b.witness", errors)


def test_a_plan_against_the_worst_user_answers_differences_between_users(run, tmp_path):
    """As in a report; a floor, which is for ever, and a plan for others do not."""
    rng, rows = np.random.default_rng(2), []
    for who in range(30):
        stay = 0.65 if who % 2 else 0.45
        chain = tpl.TransitionMatrix([[stay, 1 - stay], [1 - stay, stay]])
        rows += [(f"p{who}", day, place) for day, place in enumerate(chain.sample(100, rng=rng))]
    pd.DataFrame(rows, columns=["user", "time", "state"]).to_csv("visits.csv", index=False)
    against = ("--against", "the worst user's habits")
    report = ("report", "visits.csv", "--alpha", 1, "--horizon", 12, "--draws", 0, *against)
    assert run(*report, "--budgets", "plan.csv")[0] == 0
    assert "recommended: α/T" not in (tmp_path / "plan.csv").read_text()
    words = ("publish", "own.sqlite", "counts.csv", "--data", "visits.csv", "--alpha", 1)
    words += ("--sensitivity", 2, "--step", "1h")
    assert run(*words, "--plan", "plan.csv")[0] == command.WITHHELD
    status, _, errors = run(*words, "--floor", 0.05, *against)
    assert (status, "needs a plan of budgets, found none; give --plan" in errors) == (2, True)
    (tmp_path / "high.csv").write_text("epsilon\n0.9\n0.9\n0.9\n")
    status, _, errors = run(*words, "--plan", "high.csv", *against)
    assert (status, "must keep alpha = 1 against the worst user's habits" in errors) == (2, True)
    assert run(*words, "--plan", "plan.csv", *against)[0] == 0
    assert run(*words, "--plan", "plan.csv", *against)[0] == 0  # compared with the file
    status, _, errors = run(*words, "--plan", "plan.csv", "--against", "me")
    assert (status, "against must be one of" in errors) == (2, True)


def test_the_version_is_printed(capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"tplrepro {tpl.__version__}\n")


@pytest.mark.parametrize(
    "stdin",
    [
        "2024-05-01 10:00,7,8\n",
        '"time","home, old","Zürich"\n2024-05-01 10:00,7,8\n',
        "time\thome, old\tZürich\n2024-05-01 10:00\t7\t8\n",
        "\ufefftime;home, old;Zürich\n2024-05-01 10:00;7;8\n",
        "2024-05-01 10:00\t7\t8\n",
    ],
)
def test_counts_of_standard_input_stay_in_memory(run, tmp_path, monkeypatch, stdin):
    (tmp_path / "old.csv").write_text('time,"home, old",Zürich\n2024-05-01 09:00,5,6\n')
    assert run("publish", "p.sqlite", "old.csv", *NEW)[0] == 0
    monkeypatch.setattr("tempfile.mkdtemp", None)
    monkeypatch.setattr("tempfile.mkstemp", None)
    status, _, said = run("publish", "p.sqlite", "-", stdin=stdin)
    assert (status, said) == (0, "noise was added to home, old, Zürich, and not to time\n")
    assert str(tr.Publisher("p.sqlite").to_frame().index[-1]) == "2024-05-01 10:00:00"


@pytest.mark.parametrize(
    ("stdin", "message"),
    [
        ("time,home,work\n2024-05-01 10:00,31337 people,1\n", "another cell in row 1 of column 'h"),
        ("time,home,work\n2024-05-01 10:00,31337\n31338,1,2,3\n", "as many fields in each line"),
        ("31337,31338\n", "found a number; add a line of names"),
        ("time,home,home\n2024-05-01 10:00,31337,1\n", "different names, found 'home' 2 times"),
        ("time,home\n2024-05-01 10:00,13133000000000000000\n", "2..63, found a larger one"),
        ("time,home,work\n2024-05-01 10:00,-31337000000000000000,1\n", "such as 1234"),
        ("", "must be a table in UTF-8, found an empty file"),
    ],
)
def test_errors_of_counts_name_no_count_and_no_temporary_file(run, stdin, message):
    status, printed, said = run("publish", "p.sqlite", "-", *NEW, stdin=stdin)
    assert status == 2
    assert re.search(message, said)
    assert "3133" not in said + printed
    assert "/" not in said.replace("2024/", "")


def test_closed_standard_input_is_a_message(run, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr("io.TextIOWrapper", lambda _: None)
        status, _, said = run("publish", "p.sqlite", "-", *NEW)
    assert (status, "standard input must be open" in said) == (2, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--floor", "5e-324", "--sensitivity", 2),
            "scale sensitivity / budget, which must be a f",
        ),
        (("--floor", 0.1, "--sensitivity", "1e308"), "found 1e.308 / 0.1; give more budget"),
    ],
)
def test_noise_that_cannot_be_drawn_is_refused_when_the_file_is_made(run, tmp_path, words, message):
    status, _, said = run("publish", "p.sqlite", "--matrix=moves.csv", "--alpha=1", *words)
    assert status == 2
    assert re.search(message, said)
    assert not (tmp_path / "p.sqlite").exists()


def test_json_has_no_infinity_and_a_gaussian_plan_has_leakages(run, tmp_path):
    plan = tf.allocate_noise(2.0, 1e-6, P, P, 2)
    pd.DataFrame({"noise_multiplier": plan}).to_csv("plan.csv", index=False)
    new = ("--matrix=moves.csv", "--backward=moves.csv", "--alpha=2", "--sensitivity=1")
    counts = ("--step=1h", "--plan=plan.csv", "--delta=1e-6")
    assert run("publish", "p.sqlite", "counts.csv", *new, *counts, "--time-column=time")[0] == 0
    status, printed, _ = run("publish", "p.sqlite", "--json")
    assert (status, json.loads(printed, parse_constant=pytest.fail)) == (
        0,
        {"remaining": None, "note": "the plan has ended"},
    )
    status, printed, _ = run("ledger", "p.sqlite", "--leakage", "--json")
    rows = json.loads(printed)
    assert status == 0
    assert [row["time"][:16] for row in rows] == ["2024-05-01T08:00", "2024-05-01T09:00"]
    assert max(row["epsilon"] for row in rows) == pytest.approx(2.0, rel=1e-3)
    assert command._as_json([np.inf, {"a": float("nan")}, 1.5]) == '[null, {"a": null}, 1.5]'


#: By a chain that forgets soon: a filter looks at all intervals within its memory.
GAUSSIAN = ("--matrix=soon.csv", "--alpha=1", "--sensitivity=1.5", "--step=1h", "--delta=1e-6")


def test_gaussian_noise_may_depend_on_what_was_published(run, tmp_path):
    """`--burst` keeps a `GaussianFilter` in the file, from which `--noise-multiplier` takes."""
    new = (*GAUSSIAN, "--burst=4")
    assert run("publish", "p.sqlite", "counts.csv", *new, "--time-column=time")[0] == 0
    publisher = tr.Publisher(tmp_path / "p.sqlite")
    assert publisher.settings["burst"] == 4.0
    assert publisher.settings["delta"] == 1e-6
    forward = tpl.TransitionMatrix([[0.6, 0.4], [0.3, 0.7]])
    account = tf.GaussianFilter(1.0, 1e-6, forward.reverse(), forward, burst=4)
    assert set(publisher.ledger["noise_multiplier"]) == {account.floor}
    least = publisher.remaining
    row = "hour,time,home,work\n10,2024-05-01 10:00,11,21\n"
    (tmp_path / "next.csv").write_text(row)
    asked = ("publish", "p.sqlite", "next.csv", "--time-column=time", "--noise-multiplier")
    status, _, said = run(*asked, 0.9 * least)
    assert (status, "noise multipliers must be at least" in said) == (4, True), said
    assert run(*asked, 1.1 * least, *new)[0] == 0
    assert publisher.ledger["noise_multiplier"].iloc[-1] == 1.1 * least
    assert publisher.remaining > least
    status, _, said = run("publish", "p.sqlite", "--burst=3")
    assert (status, "found another --burst; leave out" in said) == (2, True)
    status, _, said = run("ledger", "p.sqlite", "--leakage", "--html=status.html")
    assert (status, "each time keeps (alpha, delta)" in said) == (2, True)
    assert "noise" in (tmp_path / "status.html").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (GAUSSIAN, "needs the budget of each time, found none; give --floor, --plan, or --delta"),
        ((*GAUSSIAN[:-1], "--burst=4"), "found no delta; give --delta, or a floor"),
        ((*GAUSSIAN, "--burst=4", "--floor=0.1"), "found two of them; leave one out"),
        ((*GAUSSIAN, "--burst=-1"), "burst must be at least 0"),
        ((*GAUSSIAN, "--burst=4", "--epsilon=0.1"), "found --epsilon; give --noise-multiplier"),
        ((*GAUSSIAN, "--burst=4", "--warn-below=0.1"), "--warn-below is a level of budgets"),
        (
            (*NEW, "--noise-multiplier=3"),
            "may be given with a burst, found a publisher without; give --epsilon",
        ),
    ],
)
def test_gaussian_noise_that_does_not_fit_is_refused_as_it_was_typed(run, tmp_path, words, message):
    status, _, said = run("publish", "p.sqlite", "counts.csv", *words, "--time-column=time")
    assert (status, message in said) == (2, True), said
    assert not (tmp_path / "p.sqlite").exists()


def test_times_of_steps_below_a_millisecond_are_printed_in_full(run, tmp_path):
    rows = "time,n\n2024-05-01 08:00:00.000001,1\n2024-05-01 08:00:00.000002,2\n"
    (tmp_path / "fast.csv").write_text(rows)
    new = ("--matrix=moves.csv", "--alpha=1", "--sensitivity=1", "--floor=0.1", "--step=1us")
    assert run("publish", "p.sqlite", "fast.csv", *new)[0] == 0
    status, printed, _ = run("ledger", "p.sqlite", "--noisy", "--json")
    assert status == 0
    assert [row["time"] for row in json.loads(printed)] == [
        "2024-05-01T08:00:00.000001",
        "2024-05-01T08:00:00.000002",
    ]


def ended(words, cwd, close=False, **options):
    """Exit status, errors and output of a process of the command; nobody reads its output if it is
    closed."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    words = [sys.executable, "-m", "tplreport.command", *words]
    with subprocess.Popen(words, cwd=cwd, **pipes, **options) as started:
        printed = b""
        if close:
            started.stdout.close()
        else:
            printed = started.stdout.read()
        said = started.stderr.read()
    return started.returncode, said.decode(), printed.decode()


ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}


def test_a_reader_of_the_output_may_end_before_the_command(run, tmp_path):
    words = ["leakage", "--matrix=moves.csv", "--epsilon=0.1", "--horizon=20000", "--json"]
    assert ended(words, tmp_path, close=True, env=ENVIRONMENT) == (141, "", "")


def test_an_interrupt_is_one_line(run, monkeypatch):
    monkeypatch.setattr(command, "_show", mock.Mock(side_effect=KeyboardInterrupt))
    words = ("leakage", "--matrix=moves.csv", "--epsilon=0.1", "--horizon=3")
    assert run(*words) == (130, "", "tplrepro leakage: interrupted\n")


def test_labels_beyond_ascii_are_printed_in_an_ascii_locale(run, tmp_path):
    plain = ENVIRONMENT | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    plain.pop("PYTHONIOENCODING", None)
    (tmp_path / "new.csv").write_text("time,Zürich\n2024-05-01 10:00,7\n", encoding="utf-8")
    words = ["publish", "p.sqlite", "-", *map(str, NEW)]
    with open(tmp_path / "new.csv") as stdin:
        status, said, printed = ended(words, tmp_path, env=plain, stdin=stdin)
    assert (status, said) == (0, "noise was added to Zürich, and not to time\n")
    assert "Zürich" in printed
    assert tr.Publisher(tmp_path / "p.sqlite").to_frame().columns.tolist() == ["Zürich"]


HABITS = "phase,home,work\n" + "".join(
    f"{hour:02d}:00,{'.98,.02' if hour < 6 else '.7,.3'}\n"
    f"{hour:02d}:00,{'.03,.97' if hour < 6 else '.4,.6'}\n"
    for hour in range(24)
)


@pytest.fixture
def habits(tmp_path):
    """The cycle in the file habits.csv."""
    (tmp_path / "habits.csv").write_text(HABITS)
    night, day = [[0.98, 0.02], [0.03, 0.97]], [[0.7, 0.3], [0.4, 0.6]]
    return tpl.Cycle([night] * 6 + [day] * 18, step="1h")


def test_leakages_and_budgets_follow_the_clock(run, habits, tmp_path):
    words = ("--matrix", "habits.csv", "--epsilon", 0.1, "--horizon", 30, "--json")
    for start, first in (("habit", "00:00"), ("any", "08:00"), ([0.9, 0.1], "17:00")):
        turned = habits.starting_at(first)
        name = start
        if not isinstance(start, str):
            name = "law.csv"
            (tmp_path / name).write_text("work,0.1\nhome,0.9\n")
        status, printed, _ = run("leakage", *words, "--start", name, "--first", first)
        rows = json.loads(printed)
        expected = tpl.temporal_privacy_leakage(
            0.1, turned.reverse(start=start), turned, horizon=30
        )
        assert status == 0
        assert [row["tpl"] for row in rows] == pytest.approx(expected.tpl, rel=1e-14)
        assert [row["phase"] for row in rows][:2] == turned.phases[:2]
    plan = ("--matrix", "habits.csv", "--alpha", 1, "--horizon", 48)
    status, _, _ = run("budgets", *plan, "--scheme", "constant", "--csv", "plan.csv")
    table = pd.read_csv(tmp_path / "plan.csv", index_col="t")
    assert table["phase"].tolist() == habits.phases * 2
    assert table["tpl"].max() <= 1.0
    for scheme in ("quantification", "optimal", "composed"):
        assert run("budgets", *plan, "--scheme", scheme, "--csv", "other.csv")[0] == 0
        assert pd.read_csv(tmp_path / "other.csv")["tpl"].max() <= 1.0


def test_a_new_file_follows_the_clock_and_is_opened_as_it_was_made(run, habits, tmp_path):
    plan = ("--matrix", "habits.csv", "--alpha", 1, "--horizon", 48)
    run("budgets", *plan, "--scheme", "constant", "--start", "any", "--csv", "floors.csv")
    new = ("--matrix=habits.csv", "--alpha=1", "--sensitivity=2", "--step=1h", "--floor=floors.csv")
    status, _, errors = run("publish", "p.sqlite", "counts.csv", *new, "--start=any")
    assert (status, errors.count("warning")) == (0, 0), errors
    publisher = tr.Publisher(tmp_path / "p.sqlite")
    floors = pd.read_csv(tmp_path / "floors.csv")["epsilon"].tolist()
    assert publisher.ledger["epsilon"].tolist() == floors[8:10]
    assert publisher.settings["start"] == "any"
    assert run("publish", "p.sqlite", *new, "--start=any")[0] == 0
    for other in (("--start=habit",), ("--start=any", "--floor=0.01")):
        status, _, errors = run("publish", "p.sqlite", *new, *other)
        assert (status, "must be used as it was made" in errors) == (2, True)
    (tmp_path / "habits.csv").write_text(HABITS.replace(".98,.02", ".97,.03"))
    status, _, errors = run("publish", "p.sqlite", *new, "--start=any")
    assert (status, "found another --matrix" in errors) == (2, True)


def test_a_folder_of_numbered_matrices_has_the_clock_of_the_releases(run, tmp_path):
    (tmp_path / "quarters").mkdir()
    for phase, row in enumerate((".98,.02", ".7,.3", ".7,.3", ".8,.2")):
        (tmp_path / "quarters" / f"{phase}.csv").write_text(f"home,work\n{row}\n.3,.7\n")
    (tmp_path / "floors.csv").write_text("phase,epsilon\n0,0.01\n1,0.05\n2,0.05\n3,0.05\n")
    (tmp_path / "six.csv").write_text(
        "time,home,work\n2024-05-01 18:00,1,2\n2024-05-02 00:00,1,2\n"
    )
    new = ("--matrix=quarters", "--alpha=1", "--sensitivity=2", "--floor=floors.csv")
    status, _, errors = run("publish", "q.sqlite", "six.csv", *new, "--step=6h")
    assert status == 0, errors
    assert tr.Publisher(tmp_path / "q.sqlite").ledger["epsilon"].tolist() == [0.05, 0.01]
    status, _, errors = run("publish", "r.sqlite", "six.csv", *new, "--step=1h")
    assert (status, "a cycle that is no day and no week" in errors) == (2, True)
    assert not (tmp_path / "r.sqlite").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--matrix=moves.csv", "--first=08:00"), "--first is a phase of a cycle, found one matr"),
        (("--matrix=habits.csv", "--first=8"), "--first must be a phase of habits.csv, found '8'"),
        (("--matrix=habits.csv", "--start=none.csv"), "none.csv"),
        (("--matrix=habits.csv", "--start=moves.csv"), "must have a line for each state"),
        (("--matrix=moves.csv", "--backward=moves.csv", "--start=any"), "--backward or --start, "),
        (("--matrix=moves.csv", "--cycle=day"), "--cycle belongs to data"),
    ],
)
def test_mistakes_about_clocks_are_said_in_the_words_of_the_command(run, habits, words, said):
    status, _, errors = run("leakage", *words, "--epsilon=0.1", "--horizon=2")
    assert (status, said in errors) == (2, True), errors


def test_clocks_that_do_not_fit_are_said_in_the_words_of_the_command(run, habits, tmp_path):
    new = ("--matrix=habits.csv", "--alpha=1", "--sensitivity=2")
    status, _, errors = run("publish", "a.sqlite", *new, "--floor=0.01", "--step=1D")
    assert (status, "**" in errors) == (2, False)
    assert "found steps of 1h and --step '1D'; estimate it with steps of 1D" in errors
    new_cycle = ("--matrix=habits.csv", "--alpha=1", "--sensitivity=2", "--floor=0.01")
    status, _, errors = run("publish", "a.sqlite", *new_cycle)
    assert "give --step '1h', or phases 0, 1, ... in --matrix, which begin at phase 0" in errors
    (tmp_path / "plan.csv").write_text("0.1\n0.1\n")
    planned = ("--plan=plan.csv", "--step=1h")
    status, _, errors = run("publish", "b.sqlite", "counts.csv", *new, *planned)
    assert (status, "make them of --first '08:00'" in errors) == (2, True), errors
    assert run("publish", "b.sqlite", "counts.csv", *new, *planned, "--first=08:00")[0] == 0


@pytest.fixture
def hourly_walks(habits, tmp_path):
    """The file walks.csv of people with these habits."""
    rng = np.random.default_rng(0)
    times = pd.date_range("2024-05-06", periods=24 * 14, freq="1h")
    walks = [
        pd.DataFrame({"user": user, "time": times, "state": habits.sample(len(times), rng=rng)})
        for user in range(40)
    ]
    pd.concat(walks).to_csv(tmp_path / "walks.csv", index=False)


def test_a_report_s_budgets_begin_at_the_phase_in_their_file(run, hourly_walks, tmp_path):
    """Leakages and a publisher take it from there: the plan is for no other hour."""
    report = ("report", "walks.csv", "--step=1h", "--alpha=1", "--horizon=6", "--draws=0")
    assert run(*report, "--first=08:00", "--budgets=plan.csv")[0] == 0
    status, printed, _ = run("leakage", "--data=walks.csv", "--budgets=plan.csv", "--json")
    rows = json.loads(printed)
    assert (status, rows[0]["phase"], rows[-1]["phase"]) == (0, "08:00", "13:00")
    assert 0.99 < max(row["tpl"] for row in rows) <= 1.0
    data = ("--data=walks.csv", "--alpha=1", "--data-step=1h", "--step=1h", "--sensitivity=2")
    status, _, errors = run("publish", "f.sqlite", "counts.csv", *data, "--plan=plan.csv")
    assert status == 0, errors


def test_data_by_the_hour_make_a_publisher_that_follows_the_clock(run, hourly_walks, tmp_path):
    data = ("--data=walks.csv", "--alpha=1", "--data-step=1h", "--step=1h", "--sensitivity=2")
    status, _, errors = run("publish", "d.sqlite", "counts.csv", *data, "--floor=0.01")
    assert status == 0, errors
    publisher = tr.Publisher(tmp_path / "d.sqlite")
    assert publisher.settings["cycle"]["period"] == "day"
    assert publisher._phase == 8
    assert run("publish", "d.sqlite", *data, "--floor=0.01")[0] == 0
    status, _, errors = run("publish", "e.sqlite", *data, "--floor=0.01", "--cycle=none")
    assert (status, "the time of day" in errors or "habits follow" in errors) == (3, True), errors
    words = ("--data=walks.csv", "--step=1h", "--horizon=5", "--epsilon=0.1", "--cycle=week")
    status, printed, _ = run("leakage", *words, "--first=Tue 08:00", "--json")
    assert [row["phase"] for row in json.loads(printed)][:2] == ["Tue 08:00", "Tue 09:00"]
    said = run("report", "walks.csv", "--step=1h", "--alpha=1", "--horizon=5", "--first=08:00")[1]
    assert "08:00" in said


def test_observations_of_days_are_no_chain_for_hourly_releases(run, tmp_path):
    rng = np.random.default_rng(0)
    times = pd.date_range("2024-05-06", periods=30, freq="1D")
    chain = tpl.TransitionMatrix(P, ["home", "work"])
    walks = [
        pd.DataFrame({"user": user, "time": times, "state": chain.sample(30, rng=rng)})
        for user in range(40)
    ]
    pd.concat(walks).to_csv(tmp_path / "walks.csv", index=False)
    words = ("--data=walks.csv", "--alpha=1", "--sensitivity=2", "--floor=0.05", "--step=1h")
    status, _, errors = run("publish", "p.sqlite", *words)
    assert (status, "1 day apart and --step 1h; give --step 1D" in errors) == (2, True)
    assert run("publish", "p.sqlite", *words[:-1], "--step=1D")[0] == 0


STATISTICS = (
    "statistic,sensitivity,share,every,at\npeople,2,0.5,,\nvisits,1,0.3\nspent,50,1/5,1D,09:00\n"
)


def test_several_statistics_are_published_from_one_table(run, tmp_path):
    (tmp_path / "statistics.csv").write_text(STATISTICS)
    (tmp_path / "three.csv").write_text(
        "time,people: home,people: work,visits,spent\n"
        "2024-05-01 08:00,105,98,30,\n2024-05-01 09:00,99,104,31,5000.0\n"
    )
    new = ("--matrix=moves.csv", "--alpha=1", "--statistics=statistics.csv", "--step=1h")
    words = ("publish", "own.sqlite", "three.csv", *new, "--floor=largest")
    status, printed, errors = run(*words, "--csv=noisy.csv")
    assert (status, "noise was added to people: home, people: work, visits" in errors) == (0, True)
    noisy = pd.read_csv("noisy.csv", index_col="time")
    assert noisy.columns.tolist() == ["people: home", "people: work", "visits", "spent"]
    assert noisy["visits"].dtype == np.int64
    assert noisy["spent"].isna().tolist() == [True, False]
    assert run("publish", "own.sqlite", "three.csv", "--csv=again.csv")[0] == 0
    pd.testing.assert_frame_equal(pd.read_csv("again.csv", index_col="time"), noisy)
    assert run(*words)[0] == 0  # as it was made
    status, printed, _ = run("ledger", "own.sqlite", "--json")
    first, second = json.loads(printed)
    floor = tr.Publisher("own.sqlite").settings["floor"]
    assert first["epsilon: spent"] == 0.0
    assert first["epsilon"] == pytest.approx(0.8 * floor)
    assert second["epsilon: spent"] == pytest.approx(0.2 * floor)
    status, printed, _ = run("ledger", "own.sqlite", "--noisy", "--json")
    assert json.loads(printed)[0]["spent"] is None
    line = "2024-05-01 10:00,1,2,,\n"
    status, _, errors = run("publish", "own.sqlite", "-", stdin=line)
    assert status == 2
    assert "found no counts; give them, or --without 'visits' if there are none" in errors
    assert run("publish", "own.sqlite", "-", "--without=visits", stdin=line)[0] == 0
    (tmp_path / "statistics.csv").write_text(STATISTICS.replace("50", "60"))
    status, _, errors = run(*words)
    assert status == 2
    assert "must be used as it was made, found another --statistics; leave out" in errors


@pytest.mark.parametrize(
    ("table", "counts", "message"),
    [
        (STATISTICS.replace("1/5", "1/4"), "", "shares of all statistics must sum to 1, found"),
        (STATISTICS.replace("1/5", "x"), "", "share must be numbers such as 2 or 0.5, found 'x'"),
        (STATISTICS + "visits,1,0.3\n", "", "each statistic must have one row, found 'visits'"),
        ("name,share\na,1\n", "", "must have the columns statistic, sensitivity, share, every, at"),
        (STATISTICS.replace("1D", "7"), "", "every of statistic 'spent' must be a whole number of"),
        (STATISTICS, "time,people: a,sales\n2024-05-01 08:00,1,2\n", "columns must be those of"),
        (
            STATISTICS,
            "time,people: a,people: b,visits\n2024-05-01 08:00,1,,2\n",
            "all or no counts of 'people' must be there at a time, found a part at 2024-05-01",
        ),
        (STATISTICS, "time,visits\n2024-05-01 08:00,2\n", "people is due at 2024-05-01 08:00:00"),
    ],
)
def test_mistakes_with_several_statistics_have_a_remedy(run, tmp_path, table, counts, message):
    (tmp_path / "statistics.csv").write_text(table)
    (tmp_path / "three.csv").write_text(counts or "time,visits\n2024-05-01 08:00,2\n")
    new = ("--matrix=moves.csv", "--alpha=1", "--statistics=statistics.csv", "--step=1h")
    status, _, errors = run("publish", "own.sqlite", "three.csv", *new, "--floor=largest")
    assert (status, message in errors) == (2, True), errors
    assert not (tmp_path / "own.sqlite").exists()


@pytest.mark.filterwarnings("always:.*nats remain for the next time")
def test_an_alert_is_an_exit_status_of_publishing_and_of_the_ledger(run):
    words = ("publish", "own.sqlite", "counts.csv")
    assert run(*words, *NEW, "--warn-below", 0.2)[0] == 0
    assert run("ledger", "own.sqlite", "--warn-below", 0.2)[0] == 0
    level = tr.Publisher("own.sqlite").remaining + 0.01
    status, printed, errors = run("ledger", "own.sqlite", "--json", "--warn-below", level)
    assert (status, len(json.loads(printed))) == (5, 2)
    assert re.search(
        r"warning: own.sqlite: 0.\d+ nats remain for the next time, less than --warn-below 0.\d+;",
        errors,
    )
    skip = ("publish", "own.sqlite", "--skip", "2024-05-01 10:00", "--json")
    assert run(*skip, "--warn-below", 0.99)[0] == 5
    with pytest.raises(SystemExit):
        run("ledger", "own.sqlite", "--warn-below", "much")


def test_the_ledger_is_written_as_a_page(run, tmp_path):
    assert run("publish", "own.sqlite", "counts.csv", *NEW)[0] == 0
    status, printed, _ = run("ledger", "own.sqlite", "--html", "status.html")
    assert (status, "published" in printed) == (0, True)
    page = (tmp_path / "status.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "<title>own.sqlite</title>" in page
    for target in ("own.sqlite", "own.sqlite.mark"):
        status, _, errors = run("ledger", "own.sqlite", "--html", target)
        assert (status, "must spare" in errors) == (2, True), errors


def test_another_chain_is_followed_from_a_time_on(run, tmp_path):
    (tmp_path / "new.csv").write_text("home,work\n0.6,0.4\n0.3,0.7\n")
    change = ("--change=2024-05-01 10:00", "--matrix=new.csv", "--floor=largest")
    status, _, errors = run("publish", "own.sqlite", *change)
    assert (status, "--change is for a file that has published, found none" in errors) == (2, True)
    assert run("publish", "own.sqlite", "counts.csv", *NEW)[0] == 0
    status, _, errors = run("publish", "own.sqlite", "--change=2024-05-01 10:00")
    assert (status, "must be that of --matrix or --data, found none; give one" in errors) == (
        2,
        True,
    )
    by_model = ("--change=2024-05-01 10:00", "--model=model.json")
    status, _, errors = run("publish", "own.sqlite", *by_model)
    assert (status, "found --model with --change; give a public --matrix" in errors) == (2, True)
    status, _, errors = run("publish", "own.sqlite", *change[:2], "--floor=0.9")
    assert (status, "floor must keep the TPL within alpha" in errors) == (2, True)
    (tmp_path / "later.csv").write_text("time,hour,home,work\n2024-05-01 10:00,10,3,4\n")
    assert run("publish", "own.sqlite", "later.csv", *change)[0] == 0
    publisher = tr.Publisher("own.sqlite")
    assert publisher.changes["start"].tolist() == ["carried over"]
    assert publisher.ledger["epsilon"].tolist() == [0.1, 0.1, publisher.changes["floor"][0]]
    status, _, errors = run("publish", "own.sqlite", *change[:2], "--start=any")
    assert (status, "at a time that is next, and once, found 2024-05-01 10:00" in errors) == (
        2,
        True,
    )
    assert run("publish", "own.sqlite", *NEW)[0] == 0  # as it was made


@pytest.mark.filterwarnings("ignore:6,680 of 13,440 rows")
def test_a_cycle_and_the_chain_of_data_are_followed_from_a_time_on(run, hourly_walks, tmp_path):
    """What `publish` takes for a new file."""
    assert run("publish", "own.sqlite", "counts.csv", *NEW)[0] == 0
    rows = [f"{hour:02}:00,{row}" for hour in range(24) for row in ("0.6,0.4", "0.3,0.7")]
    (tmp_path / "cycle.csv").write_text("\n".join(["phase,home,work", *rows]))
    by_cycle = ("--matrix=cycle.csv", "--floor=largest")
    assert run("publish", "own.sqlite", "--change=2024-05-01 10:00", *by_cycle)[0] == 0
    publisher = tr.Publisher("own.sqlite")
    following = publisher.changes["floor"][0]
    (tmp_path / "later.csv").write_text("time,hour,home,work\n2024-05-01 10:00,10,3,4\n")
    assert run("publish", "own.sqlite", "later.csv")[0] == 0
    assert publisher.ledger["epsilon"].tolist() == [0.1, 0.1, following]
    walks = pd.read_csv("walks.csv")
    walks["state"] = walks["state"].map({0: "home", 1: "work"})
    walks.to_csv("walks.csv", index=False)
    change = ("--change=2024-05-01 11:00", "--data=walks.csv", "--floor=largest")
    status, _, errors = run("publish", "own.sqlite", *change, "--data-step=2h")
    assert (status, "found --data-step 2h and --step 1h; give --data-step 1h" in errors) == (
        2,
        True,
    )
    status, _, errors = run("publish", "own.sqlite", *change, "--data-step=1h", "--cycle=none")
    assert (status, "the data must show one chain" in errors) == (3, True)
    assert len(tr.Publisher("own.sqlite").changes) == 1
    status, _, errors = run("publish", "own.sqlite", *change, "--data-step=1h")
    assert status == 0, errors
    assert tr.Publisher("own.sqlite").changes["start"].tolist() == ["carried over", "backward"]


ROW = "time,home,work\n"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((8, 9, 12), 'up to 2024-05-01 09:00:00 alone, and then the others with --skip "2024-05-01 '
         '10:00:00" --skip-until "2024-05-01 11:00:00"'),
        ((8, 10), 'alone, and then the others with --skip "2024-05-01 09:00:00"'),
        ((8, 8), "found 2024-05-01 08:00:00 twice; leave one of them out; an hour that clocks"),
        ((8, 9, 7), "found 2024-05-01 07:00:00 after 2024-05-01 09:00:00; sort them; an hour"),
    ],
)  # fmt: skip
def test_times_that_do_not_follow_have_a_remedy_that_can_be_typed(run, tmp_path, rows, message):
    lines = [f"2024-05-01 {hour:02}:00,1,2\n" for hour in rows]
    (tmp_path / "odd.csv").write_text(ROW + "".join(lines))
    status, printed, errors = run("publish", "own.sqlite", "odd.csv", *NEW)
    assert (status, printed, message in errors) == (2, "", True), errors


def test_times_that_are_missing_or_have_passed_are_skipped_as_the_message_says(run, tmp_path):
    (tmp_path / "counts.csv").write_text(ROW + "2024-05-01 08:00,1,2\n2024-05-01 09:00,1,2\n")
    assert run("publish", "own.sqlite", "counts.csv", *NEW)[0] == 0
    (tmp_path / "later.csv").write_text(ROW + "2024-05-01 12:00,3,4\n")
    status, _, errors = run("publish", "own.sqlite", "later.csv")
    skip = ("--skip", "2024-05-01 10:00:00", "--skip-until", "2024-05-01 11:00:00")
    typed = f'{skip[0]} "{skip[1]}" {skip[2]} "{skip[3]}"'
    assert (status, f"2 missing; publish them, or give {typed}\n" in errors) == (2, True), errors
    status, _, errors = run("publish", "own.sqlite", "--skip", "2024-05-01 09:00")
    remedy = 'give --skip "2024-05-01 10:00:00", and --skip-until not before it\n'
    assert (status, errors.endswith(remedy)) == (2, True), errors
    assert run("publish", "own.sqlite", "later.csv", *skip)[0] == 0


def test_a_number_as_a_time_is_shown_as_it_was_typed(run, tmp_path):
    (tmp_path / "odd.csv").write_text(ROW + "1,1,2\n")
    status, _, errors = run("publish", "own.sqlite", "odd.csv", *NEW)
    assert (status, "found time 1 and step '1h'" in errors) == (2, True), errors


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            "",
            "home,work\n",
            "in the same order, without names of states: the earlier chain has none",
        ),
        (
            "home,work\n",
            "",
            "in the same order, with the names of states that the earlier chain has",
        ),
        ("home,work\n", "home,gym\n", "give a matrix of the same places in the same order$"),
    ],
)
def test_names_of_states_that_one_chain_has_are_a_remedy(run, tmp_path, before, after, message):
    (tmp_path / "moves.csv").write_text(f"{before}0.8,0.2\n0.1,0.9\n")
    (tmp_path / "soon.csv").write_text(f"{after}0.6,0.4\n0.3,0.7\n")
    assert run("publish", "own.sqlite", "counts.csv", *NEW)[0] == 0
    change = ("--change", "2024-05-01 10:00", "--matrix", "soon.csv", "--floor", 0.01)
    status, _, errors = run("publish", "own.sqlite", *change)
    assert status == 2
    assert re.search(message, errors.strip()), errors


HOURLY = ("--matrix", "moves.csv", "--alpha", 1, "--sensitivity", 2, "--step", "1h")
PLANNED = (*HOURLY, "--plan", "plan.csv")


def test_a_plan_says_how_many_of_its_times_are_left(run, tmp_path):
    (tmp_path / "plan.csv").write_text("epsilon\n0.1\n")
    status, printed, errors = run("publish", "own.sqlite", "counts.csv", *PLANNED)
    assert (status, printed) == (2, "")
    assert (
        "the plan has 1 time, 1 of them left, found 2 new times, of which none was published; give "
        "at most 1, and the others to a new file" in errors
    )


def test_a_page_without_matplotlib_is_refused_before_anything_is_computed(run, monkeypatch):
    """It was refused after the report was printed, and the budgets were not written."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    words = ("report", "none.csv", "--alpha", 1, "--horizon", 3, "--html", "page.html")
    status, printed, errors = run(*words)
    assert (status, printed) == (2, "")
    assert errors.startswith("tplrepro report: matplotlib must be installed, found none; install ")


def test_a_table_that_comes_through_a_pipe_is_refused_with_a_remedy(run, tmp_path):
    """It was said not to be seekable."""
    os.mkfifo(tmp_path / "pipe")
    plan = ("publish", "own.sqlite", "counts.csv", *HOURLY, "--plan", "pipe")
    budgets = ("leakage", "--matrix", "moves.csv", "--budgets", "pipe")
    matrix = ("leakage", "--matrix", "pipe", "--epsilon", 1, "--horizon", 2)
    for words in (plan, budgets, matrix):
        status, printed, errors = run(*words)
        assert (status, printed) == (2, "")
        assert "found a pipe pipe; write what comes from it into a file first" in errors


@pytest.mark.parametrize("name", ["time", "Date", "timestamp"])
def test_the_times_of_a_plan_are_those_of_its_releases(run, tmp_path, name):
    """They were ignored: the first budget was that of any time that came first."""
    hours = [f"2024-05-01 {hour:02}:00" for hour in (8, 9, 10)]
    late = "".join(f"{hour}:00,0.1\n" for hour in hours)
    later = late.replace("10:", "12:").replace("09:", "11:")
    (tmp_path / "plan.csv").write_text(f"{name},epsilon\n2024-05-01 07:00,0.1\n{late}")
    status, printed, errors = run("publish", "own.sqlite", "counts.csv", *PLANNED)
    assert (status, printed) == (2, "")
    assert (
        "plan.csv: the times of a plan must be those of its releases, found 2024-05-01 07:00 for "
        "release 1, which is that of 2024-05-01 08:00:00; correct them, or leave the column "
        f"{name!r} out to count from the first release\n" in errors
    )
    assert not (tmp_path / "own.sqlite").exists()
    (tmp_path / "plan.csv").write_text(f"{name},epsilon\n{late}")
    assert run("publish", "own.sqlite", "counts.csv", *PLANNED)[0] == 0
    (tmp_path / "later.csv").write_text("time,hour,home,work\n2024-05-01 10:00,10,3,4\n")
    assert run("publish", "own.sqlite", "later.csv", *PLANNED)[0] == 0
    (tmp_path / "plan.csv").write_text(f"{name},epsilon\n{later}")
    status, _, errors = run("publish", "own.sqlite", "later.csv", *PLANNED)
    assert (status, "found 2024-05-01 11:00:00 for release 2, which is" in errors) == (2, True)
    content = (tmp_path / "own.sqlite").read_bytes()
    (tmp_path / "copy.sqlite").write_bytes(content)
    resume = ("--resume", "2024-05-01 10:00")
    status, _, errors = run("publish", "copy.sqlite", *PLANNED, *resume)
    assert (status, "for release 2, which is that of" in errors) == (2, True), errors
    assert (tmp_path / "copy.sqlite").read_bytes() == content


@pytest.mark.parametrize(
    ("times", "words", "message"),
    [
        ("0 1", (), ""),
        ("1 2", (), ""),
        (
            "2 3",
            (),
            "plan.csv: times must be dates without a zone as before, found 2; .*, or leave",
        ),
        ("Mon Tue", (), "whole numbers or dates, found 'Mon'; .*, or leave the column 'time' out"),
        ("2024-05-01 2024-05-02", (), "as fine as the step 1h, .*, or leave the column 'time' out"),
        ("2024-05-01T07:00 2024-05-01T08:00", ("--skip", "2024-05-01 07:00"), ""),
        ("2024-05-01T08:00 2024-05-01T10:00", (), "for release 2, which is that of .* 09:00:00;"),
    ],
)
def test_other_times_of_a_plan_count_releases_or_are_refused(run, tmp_path, times, words, message):
    lines = "".join(f"{time},0.1\n" for time in times.split())
    (tmp_path / "plan.csv").write_text(f"time,epsilon\n{lines}")
    (tmp_path / "counts.csv").write_text(ROW + "2024-05-01 08:00,1,2\n")
    status, _, errors = run("publish", "own.sqlite", "counts.csv", *PLANNED, *words)
    assert status == (2 if message else 0), errors
    assert re.search(message, errors.strip()), errors


def test_numbered_rows_are_compared_with_the_numbers_of_a_plan(run, tmp_path):
    """Which may also count releases from 0 on, or from 1 on, as those of a report do."""
    words = [word for word in PLANNED if word not in ("--step", "1h")]
    (tmp_path / "plan.csv").write_text("time,epsilon\n2,0.1\n3,0.1\n")
    status, _, errors = run("publish", "own.sqlite", "counts.csv", *words, "--numbered")
    assert (status, "found 2 for release 1, which is that of 1;" in errors) == (2, True), errors
    for file, first in (("own.sqlite", 1), ("other.sqlite", 0)):
        (tmp_path / "plan.csv").write_text(f"time,epsilon\n{first},0.1\n{first + 1},0.1\n")
        assert run("publish", file, "counts.csv", *words, "--numbered")[0] == 0


@pytest.mark.filterwarnings("always:the times in the column")
def test_a_ledger_is_a_plan_for_its_own_times(run, tmp_path):
    assert run("publish", "own.sqlite", "counts.csv", *NEW)[0] == 0
    assert run("ledger", "own.sqlite", "--csv", "plan.csv")[0] == 0
    status, _, errors = run("publish", "new.sqlite", *PLANNED)
    warning = "warning: the times in the column 'time' of plan.csv are compared with those of"
    assert (status, warning in errors) == (0, True), errors
    later = (tmp_path / "counts.csv").read_text().replace("2024-05-01", "2024-05-02")
    (tmp_path / "later.csv").write_text(later)
    status, _, errors = run("publish", "new.sqlite", "later.csv", *PLANNED)
    assert status == 2
    assert "found 2024-05-01 08:00:00 for release 1, which is that of 2024-05-02 08:00" in errors
    assert run("publish", "new.sqlite", "counts.csv", *PLANNED)[0] == 0
