"""The gate: what the documents advertise is run or excused, and each kind of failure is noticed."""

import re
import sys

import pytest
import yaml

from tplreport import command
from workflow.checks import gate
from workflow.configuration import ROOT


def test_each_command_of_the_documents_is_run_by_the_gate_or_excused():
    assert gate.find_unguarded() == []
    assert {
        "make figures",
        "make docs",
        "make claims-mutate",
        "python README.md",
    } <= gate.find_advertised().keys()
    assert "make check < /dev/null" in (ROOT / ".ci" / "run").read_text().splitlines()


def test_each_subcommand_is_run_by_the_gate(capsys):
    with pytest.raises(SystemExit):
        command.main(["--help"])
    # in the usage, which breaks its line, too
    names, *_ = re.findall(r"^ +\{([\w,]+)\}", capsys.readouterr().out, re.MULTILINE)
    lines = gate.read_table().lines
    tested = {form.name for line in lines for form in gate.parse_forms(line.run)}
    assert {f"tplrepro {name}" for name in names.split(",")} <= tested


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "```sh\nmake docs\nmake test lint NEW=1 # why\n```",
            "README.md: make test lint NEW=1: nothing tests it",
        ),
        ("as by `.venv/bin/other\n--here`", "README.md: .venv/bin/other --here: nothing tests it"),
        ("```python\nimport tplrepro\n```", "README.md: python README.md: nothing tests it"),
        ("", "config/gate.yaml: make test: nothing names it; drop it"),
        ("`make test` and `make lint`", None),
    ],
)
def test_a_command_that_nothing_runs_and_an_excuse_that_nothing_needs_are_named(
    text, sentence, tmp_path
):
    (tmp_path / "config").mkdir()
    (tmp_path / "README.md").write_text(text)
    (tmp_path / "Makefile").write_text("docs: ready ## build the site\n")
    table = {
        "runs": ["make docs", "make lint MORE=1"],
        "excused": {"make test": "hours"},
        "skips": {},
    }
    (tmp_path / "config/gate.yaml").write_text(yaml.safe_dump(table))
    assert [problem.partition(";")[0] for problem in gate.find_unguarded(tmp_path)][:1] == (
        [sentence.partition(";")[0]] if sentence else []
    )


SERVER = """import http.server, socketserver
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if "token=a1" in self.path else 403)
        self.end_headers()
        self.wfile.write(b"Start")
with socketserver.TCPServer(("127.0.0.1", 0), Answer) as server:
    print(f"http://127.0.0.1:{server.server_address[1]}/lab?token=a1", flush=True)
    server.serve_forever()
"""


@pytest.mark.parametrize(
    ("run", "expected", "problems"),
    [
        ("echo hello > made.txt; cat made.txt", {"says": "hel+o", "makes": ["made.txt"]}, []),
        ("exit 3", {}, ["must end with 0, found 3"]),
        (
            "echo good bye",
            {"says": "hello", "makes": ["made.txt"]},
            ["must say 'hello'", "must leave made.txt"],
        ),
        ("echo 'SKIPPED [1] tests/a.py:3: no Sphinx'", {}, ["skips tests/a.py:3: no Sphinx"]),
        ("echo 'SKIPPED [1] tests/a.py:3: Python 3.9 is not installed'", {}, []),
        ("sleep 60", {"minutes": 0.001}, ["must end within 0.001 minutes"]),
        ('test -z "$TPLREPRO_DATA$ONLY$MAKEFLAGS"', {}, []),
        (f"{sys.executable} server.py", {"serves": {"/": "Start", "other": "Start"}}, []),
        (
            f"{sys.executable} server.py",
            {"serves": {"/": "End"}},
            ["must show 'End' at /, found 'Start'"],
        ),
        ("echo broken", {"serves": {"/": "Start"}}, ["must print its address"]),
    ],
)
def test_each_kind_of_failure_is_noticed(run, expected, problems, tmp_path, monkeypatch):
    for name in ("TPLREPRO_DATA", "ONLY", "MAKEFLAGS"):
        monkeypatch.setenv(name, "set")
    monkeypatch.setattr(gate, "ROOT", tmp_path)
    monkeypatch.setattr(gate, "LOGS", tmp_path)
    (tmp_path / "made.txt").write_text("of an earlier run")
    (tmp_path / "server.py").write_text(SERVER)
    assert (
        gate.run_line(gate.Line(run, **expected), 1, {"is not installed": "no such Python"})
        == problems
    )


def test_the_gate_fails_if_a_line_fails_or_changes_a_committed_file(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(gate, "LOGS", tmp_path)
    lines, changes = [gate.Line("true"), gate.Line("false")], iter([b"", b"", b"", b"changed"])
    monkeypatch.setattr(gate, "read_table", lambda: gate.Table(lines, {}, {}))
    monkeypatch.setattr(gate, "read_changes", lambda: next(changes))
    assert gate.main([]) == 1
    assert "FAILED: false: must end with 0, found 1\n1 failures" in capsys.readouterr().out
    assert gate.main(["true"]) == 1
    assert "must leave the committed files as they are" in capsys.readouterr().out
    with pytest.raises(
        SystemExit, match="must be words of a line in config/gate.yaml, found 'none'"
    ):
        gate.main(["none"])
