"""Environment variables under which notebooks run: this environment's kernel, no settings of the user's own."""

import os
import sys

from workflow.configuration import ROOT

__all__ = ["kernel_environment"]


def kernel_environment(figures, profile, command, *, real_data, threads=None, root=ROOT):
    """Environment variables (dict) of a process that starts notebook kernels.

    `figures` is where `tplrepro.figures.save_figure` writes; `profile` and `command` go into the records. Without
    `real_data`, ``TPLREPRO_DATA`` and downloads are hidden, so that the stand-ins are read whatever is there.
    `threads` limits Numba, OpenMP and BLAS.
    """
    ipython = root / "build" / "ipython"
    settings = ipython / "profile_default" / "ipython_kernel_config.py"
    settings.parent.mkdir(parents=True, exist_ok=True)
    # Errors only: at every start the kernel warns that it speaks unencrypted TCP to this same machine.
    settings.write_text("c = get_config()\nc.IPKernelApp.log_level = 40\n", encoding="utf-8")
    environment = os.environ | dict(
        TPLREPRO_FIGURES=str(figures),
        TPLREPRO_PROFILE=profile,
        TPLREPRO_COMMAND=command,
        # A kernel that the user installed elsewhere under the same name must not be taken.
        JUPYTER_PATH=os.path.join(sys.prefix, "share", "jupyter"),
        IPYTHONDIR=str(ipython),
        PYTHONNOUSERSITE="1",
        PYDEVD_DISABLE_FILE_VALIDATION="1",
    )
    environment.pop("PYTHONPATH", None)
    if not real_data:
        environment.pop("TPLREPRO_DATA", None)
        environment["TPLREPRO_CACHE"] = str(root / "build" / "no-downloads")
    elif environment.get("TPLREPRO_DATA"):
        environment["TPLREPRO_DATA"] = os.path.abspath(os.path.expanduser(environment["TPLREPRO_DATA"]))
    if threads is not None:
        environment |= {f"{name}_NUM_THREADS": str(threads) for name in ("NUMBA", "OMP", "OPENBLAS", "MKL")}
    return environment
