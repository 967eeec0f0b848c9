# One rule runs one notebook through papermill. `make figures` calls this through workflow/batch/run_batch.py, which checks
# the parameters first and prints the summary. On a cluster, call Snakemake itself with an executor:
#
#     snakemake --executor slurm --jobs 50 --config profile=paper
import shlex
import sys
from pathlib import Path

HERE = Path(workflow.basedir)
sys.path.insert(0, str(HERE))

from workflow.check_parameters import find_problems
from workflow.configuration import read_notebooks, read_profile
from workflow.batch.fingerprint import is_current, result_path

PROFILE = read_profile(config.get("profile", "quick"), HERE)
ENTRIES = read_notebooks(HERE)

problems = find_problems(HERE)
if problems:
    raise ValueError("; ".join(problems))


def plan_outdated(wildcards):
    """No input, but an outdated result is to be made anew: Snakemake's own triggers know neither modules nor data.

    Reading this file changes nothing, since a dry run and every job of a cluster read it: the process that plans alone
    decides, and a result stays until the job that replaces it starts.
    """
    if workflow.is_main_process and not is_current(ENTRIES[wildcards.name], PROFILE, HERE):
        result = result_path(wildcards.name, PROFILE.name, HERE)
        workflow.dag.forcefiles.add(result.relative_to(HERE).as_posix())
    return []


workdir: str(HERE)


wildcard_constraints:
    name="|".join(ENTRIES),


rule all:
    input:
        [f"build/{PROFILE.name}/notebooks/{name}.ipynb" for name in ENTRIES],


rule notebook:
    input:
        plan_outdated,
    output:
        f"build/{PROFILE.name}/notebooks/{{name}}.ipynb",
    log:
        f"build/{PROFILE.name}/logs/{{name}}.log",
    # A notebook that measures time takes every core, so nothing runs beside it where times are evidence.
    threads: lambda wildcards: workflow.cores if ENTRIES[wildcards.name].timing and PROFILE.alone else 1
    priority: 1
    shell:
        f"{shlex.quote(sys.executable)} -m workflow.batch.run_notebook {{wildcards.name}} --profile {PROFILE.name}"
        " --threads {threads} 2>> {log}"
