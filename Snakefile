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
from workflow.fingerprint import write_fingerprint

PROFILE = read_profile(config.get("profile", "quick"), HERE)
NOTEBOOKS = read_notebooks(HERE)
PYTHON = shlex.quote(sys.executable)

problems = find_problems(HERE)
if problems:
    raise ValueError("; ".join(problems))

# What a result depends on is written to a file, rewritten only when it changed; that file is the rule's input.
for notebook in NOTEBOOKS.values():
    write_fingerprint(notebook, PROFILE, HERE)


workdir: str(HERE)


wildcard_constraints:
    name="|".join(NOTEBOOKS),


rule all:
    input:
        [f"build/{PROFILE.name}/notebooks/{name}.ipynb" for name in NOTEBOOKS],


rule notebook:
    input:
        f"build/{PROFILE.name}/fingerprints/{{name}}.json",
    output:
        f"build/{PROFILE.name}/notebooks/{{name}}.ipynb",
    log:
        f"build/{PROFILE.name}/logs/{{name}}.log",
    # A notebook that measures time takes every core, so nothing runs beside it; the others go first.
    threads: lambda wildcards: workflow.cores if NOTEBOOKS[wildcards.name].timing else 1
    priority: 1
    shell:
        f"{PYTHON} -m workflow.run_notebook {{wildcards.name}} --profile {PROFILE.name}"
        " --threads {threads} 2> {log}"
