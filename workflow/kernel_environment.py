"""Environment variables of notebooks: the kernel of this environment, no settings of the user's own."""

import json
import os
import sys

from tplreport.files import write_whole
from workflow.configuration import ROOT


def kernel_environment(figures, profile, command, *, real_data, threads=None, root=ROOT):
    """Environment variables (dict) of a process that starts notebook kernels.

    `figures` is where `experiments.figures.save_figure` writes; `profile` and `command` go into the records.
    Without `real_data`, ``TPLREPRO_DATA`` and downloads are hidden, so that the stand-ins are read whatever
    is there. `threads` limits Numba, OpenMP and BLAS.
    """
    kernel = root / "build" / "jupyter" / "kernels" / "python3" / "kernel.json"
    # Else the kernel warns at every start that it speaks unencrypted TCP to this same machine, and at some
    # ends that it was interrupted.
    words = [sys.executable, "-m", "ipykernel_launcher", "--log-level=50", "-f", "{connection_file}"]
    write_whole(kernel, json.dumps({"argv": words, "display_name": "Python 3", "language": "python"}).encode())
    environment = os.environ | dict(
        TPLREPRO_FIGURES=str(figures),
        TPLREPRO_PROFILE=profile,
        TPLREPRO_COMMAND=command,
        # A kernel that the user installed elsewhere under the same name must not be taken.
        JUPYTER_PATH=str(root / "build" / "jupyter"),
        IPYTHONDIR=str(root / "build" / "ipython"),
        PYTHONNOUSERSITE="1",
        # The code beside the notebooks, even if the environment is that of another checkout.
        PYTHONPATH=str(ROOT),
        PYDEVD_DISABLE_FILE_VALIDATION="1",
    )
    if not real_data:
        environment.pop("TPLREPRO_DATA", None)
        environment["TPLREPRO_CACHE"] = str(root / "build" / "no-downloads")
    elif environment.get("TPLREPRO_DATA"):
        environment["TPLREPRO_DATA"] = os.path.abspath(os.path.expanduser(environment["TPLREPRO_DATA"]))
    if threads is not None:
        environment |= {f"{name}_NUM_THREADS": str(threads) for name in ("NUMBA", "OMP", "OPENBLAS", "MKL")}
    return environment
