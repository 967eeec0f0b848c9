"""The browser is found, or a message says how to get one; nothing is installed here."""

import pytest

from workflow import chromium


def write_script(path, script=""):
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_the_named_browser_counts_first(tmp_path, monkeypatch):
    browser = write_script(tmp_path / "browser")
    monkeypatch.setenv("CHROMIUM", str(browser))
    assert chromium.find_chromium() == str(browser)
    monkeypatch.setenv("CHROMIUM", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError, match="CHROMIUM must name an executable file, got .*none'; correct or unset"):
        chromium.find_chromium()
    with pytest.raises(SystemExit, match="CHROMIUM must name"):
        chromium.main()


def test_without_a_package_manager_a_message_says_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert chromium.find_chromium() is None
    with pytest.raises(SystemExit, match=r"apt-get install chromium\) or set CHROMIUM=/path/to/chromium"):
        chromium.main()


def test_a_package_manager_that_cannot_reach_its_archive_is_an_error_that_ends(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(chromium.os, "geteuid", lambda: 0)
    for script, limit, words in (
        ("exit 100", 5, "apt-get update failed: .* exit status 100"),
        ("exec /bin/sleep 60", 0.2, "apt-get update failed: .* timed out after"),
    ):
        write_script(tmp_path / "apt-get", script)
        monkeypatch.setattr(chromium, "LIMIT", limit)
        with pytest.raises(RuntimeError, match=words):
            chromium.install_chromium()
