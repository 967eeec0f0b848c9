# One rule runs one notebook through papermill. `make figures` calls this through workflow/batch.py, which checks
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
from workflow.fingerprint import outdated, result_path

PROFILE = read_profile(config.get("profile", "quick"), HERE)
ENTRIES = read_notebooks(HERE)

problems = find_problems(HERE)
if problems:
    raise ValueError("; ".join(problems))

# An outdated result is removed, so that Snakemake finds it missing and makes it anew.
for name in outdated(ENTRIES, PROFILE, HERE):
    result_path(name, PROFILE.name, HERE).unlink(missing_ok=True)


workdir: str(HERE)


wildcard_constraints:
    name="|".join(ENTRIES),


rule all:
    input:
        [f"build/{PROFILE.name}/notebooks/{name}.ipynb" for name in ENTRIES],


rule notebook:
    output:
        f"build/{PROFILE.name}/notebooks/{{name}}.ipynb",
    log:
        f"build/{PROFILE.name}/logs/{{name}}.log",
    # A notebook that measures time takes every core, so nothing runs beside it where times are evidence.
    threads: lambda wildcards: workflow.cores if ENTRIES[wildcards.name].timing and PROFILE.alone else 1
    priority: 1
    shell:
        f"{shlex.quote(sys.executable)} -m workflow.run_notebook {{wildcards.name}} --profile {PROFILE.name}"
        " --threads {threads} 2>> {log}"
