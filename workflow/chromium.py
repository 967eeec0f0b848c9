"""Find Chromium for the tests of the page, or install Debian's by apt-get; elsewhere a message says what is missing."""

import os
import shutil
import subprocess
import sys

__all__ = ["MISSING", "find_chromium", "install_chromium", "main"]

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
#: Seconds; a network that does not answer must end as an error, not hang.
LIMIT = 600
APT_OPTIONS = ("--quiet=2", "-oAcquire::Retries=2", "-oAcquire::http::Timeout=30", "-oDPkg::Lock::Timeout=120")
MISSING = (
    f"Chromium is needed for the tests of the page, found none of {', '.join(NAMES)}; install it (on Debian and "
    "Ubuntu: apt-get install chromium) or set CHROMIUM=/path/to/chromium"
)


def find_chromium():
    """Path of the browser: the one that CHROMIUM names, or the first on PATH; None if there is none."""
    named = os.environ.get("CHROMIUM")
    if named and shutil.which(named) is None:
        raise FileNotFoundError(f"CHROMIUM must name an executable file, got {named!r}; correct or unset it")
    return next(filter(None, map(shutil.which, [named] if named else NAMES)), None)


def install_chromium():
    """Install Debian's chromium by apt-get, as root or through sudo; a RuntimeError says what kept it."""
    apt, sudo = shutil.which("apt-get"), shutil.which("sudo")
    if apt is None or (os.geteuid() != 0 and sudo is None):
        raise RuntimeError(MISSING)
    prefix = [apt] if os.geteuid() == 0 else [sudo, "--non-interactive", apt]
    for command in (["update"], ["install", "--yes", "--no-install-recommends", "chromium", "fonts-dejavu-core"]):
        print("apt-get", *command, flush=True)
        try:
            subprocess.run(
                [*prefix, *APT_OPTIONS, *command],
                stdin=subprocess.DEVNULL,
                env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
                check=True,
                timeout=LIMIT,
            )
        except subprocess.SubprocessError as error:
            raise RuntimeError(f"apt-get {command[0]} failed: {error}; {MISSING}") from None


def main():
    """Make sure that there is a browser; say which."""
    try:
        if find_chromium() is None:
            install_chromium()
        print("Chromium:", find_chromium() or sys.exit(MISSING))
    except (RuntimeError, FileNotFoundError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
