"""Importing our modules, as configuration and every process of a batch do, changes nothing."""

import subprocess
import sys

from workflow.configuration import ROOT

AUDIT = """
import importlib, os, pkgutil, sys
import matplotlib.pyplot  # makes folders of its own at the first start

CHANGES = {"os.chmod", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink"}
CHANGES |= {"os.system", "os.truncate", "shutil.rmtree", "socket.connect", "subprocess.Popen"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
changes = []


def watch(event, words):
    of_python = "__pycache__" in str(words[:1]) or words[:1] == (os.devnull,)
    writes = event == "open" and words[2] & WRITING
    if (writes or event in CHANGES) and not of_python:
        changes.append((event, *words[:1]))


sys.addaudithook(watch)
for root in ("workflow", "page", "experiments", "tplreport", "tplfrontier", "tplrepro"):
    package = importlib.import_module(root)
    for module in pkgutil.walk_packages(package.__path__, f"{root}."):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as absent:  # of an extra, or of the group more
            print("absent:", absent.name)
print(changes)
"""


def test_importing_any_module_changes_no_file_and_starts_nothing():
    # Without -B Python itself writes what it compiles, in an environment that is new.
    command = [sys.executable, "-B", "-W", "ignore", "-c", AUDIT]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "absent: workflow" not in done.stdout
