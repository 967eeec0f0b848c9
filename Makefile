# Only make and Python 3.11 or newer are needed: the rest is installed into .venv from requirements.lock.
#
#   make figures [PROFILE=paper] [ONLY=tkde2019/fig3] [JOBS=2]    regenerate every figure that is out of date
#   make test                                                     pass the tests
.DEFAULT_GOAL := help
SHELL := /bin/sh
.DELETE_ON_ERROR:

PROFILE ?= quick
ONLY ?=
USERS ?= 10000000
JOBS ?=
# Recipes start Python by exec, so that a signal to make reaches it and not only the shell between them.
# What users set reaches the shell as variables of its own, so that no word of it is taken for a command.
export PROFILE ONLY JOBS RECORDS ARGS
# Without it every process of the tests and each notebook compiles our modules anew.
unexport PYTHONDONTWRITEBYTECODE
# The browser for the tests of the page: the first of these that there is.
CHROMIUM ?= $(firstword $(foreach name,chromium chromium-browser google-chrome,$(shell command -v $(name))))
# The interpreter that the environment is made with: the first of these that is 3.11 or newer.
PYTHON ?= python3 python3.11 python3.12 python3.13 python3.14 python

VENV := .venv
PY := $(VENV)/bin/python
# Written last, so that an environment whose making was interrupted never counts as made.
# Of an environment that make was given, such as conda's, nothing is made or brought up to date.
GIVEN := $(filter command,$(origin VENV))
READY := $(if $(GIVEN),ours,$(VENV)/ready)
MORE := $(if $(GIVEN),ours-more,$(VENV)/ready-more)
# An environment whose interpreter is gone is made anew; until then nothing of it is removed.
BROKEN :=
ifneq ($(wildcard $(READY)),)
ifneq ($(shell $(PY) -c "print('works')" 2>/dev/null),works)
BROKEN := broken
endif
endif

.PHONY: help ours ours-more broken env figures own-data explore lab clean clean-all test test-slow test-browser test-notebooks check claims docs docs-links article lint format size notebooks claims-mutate mutate bench bench-users bench-cold publish-figures lock

# Installs what a lock file names and says how far it is. Pip uses one processor, so every other package is installed by a
# second pip beside it (as a lock file names every package, none looks for others). Python compiles each module when it is
# first imported: pip would compile all, most of which nobody imports.
define install
awk '/^[a-z0-9]/ {n++} {print > ("$(VENV)/half-" n % 2)}' $(1); rm -f $(VENV)/failed; \
	{ printf '%s\n' $(VENV)/half-0 $(VENV)/half-1 | xargs -n 1 -P 2 $(PY) -m pip install --disable-pip-version-check \
	    --progress-bar off --no-compile --use-pep517 --no-deps --require-hashes -r || touch $(VENV)/failed; } | \
	    awk '/^(Collecting|Processing)/ { if (++n % 40 == 0) print "Environment: " n " packages found"; fflush() } \
	    /^Installing collected/ { print "Environment: installing some of them, half a minute"; fflush() }'; \
	[ ! -e $(VENV)/failed ]
endef

# Make uses no environment that was made for another folder: Python would run the code there.
ours:
	@[ -n "$(BROKEN)" ] || [ ! -x $(PY) -a -z "$(GIVEN)" ] || $(PY) -I workflow/environment/own_environment.py $(GIVEN)

# Into a given environment nothing is installed.
ours-more: ours
	@$(PY) -I workflow/environment/own_environment.py --group more

broken:

ifeq ($(GIVEN),)
$(READY): requirements.lock pyproject.toml $(BROKEN) | ours
	@set -e; \
	if [ -f $(READY) -a -z "$(BROKEN)" ]; then \
	    echo "Environment: bringing .venv up to date"; rm -f $(READY); \
	else \
	    found=; \
	    for python in $(PYTHON); do \
	        if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	            found=$$python; break; \
	        fi; \
	    done; \
	    if [ -z "$$found" ]; then \
	        echo "Python 3.11 or newer is needed, found none among: $(PYTHON); set PYTHON=/path/to/python3" >&2; \
	        exit 1; \
	    fi; \
	    echo "Environment: making .venv with $$("$$found" --version)"; \
	    rm -rf $(VENV); \
	    "$$found" -m venv $(VENV); \
	fi; \
	$(call install,requirements.lock); \
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .; \
	touch $(READY)

# What the paper profile and the site need beyond that.
$(MORE): requirements-more.lock $(READY)
	@echo "Environment: adding what the paper profile and the site need"
	@set -e; $(call install,requirements-more.lock); touch $(MORE)
endif

#: Every day

help: ## show this list
	@awk -F ':.*## ' '/^#: / {print "\n" substr($$0, 4)} /^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' Makefile

env: $(READY) ## make the environment in .venv (VENV="$CONDA_PREFIX", for each command: use conda's)

figures: $(if $(filter paper,$(PROFILE)),$(MORE),$(READY)) ## regenerate every figure that is out of date (PROFILE=quick or paper, ONLY=paper/figure)
	@exec $(PY) -m workflow.batch.run_batch --profile "$$PROFILE" $(if $(JOBS),--jobs "$$JOBS") $(if $(ONLY),--only $$ONLY)

# Before processes of tests start that would each compile them.
COMPILE := $(PY) -c "from tplreport.compilation import compile_kernels; compile_kernels()"

# Of processes that share the cores each would wait for the others' BLAS threads, which took the tests 1.7 times as long.
test test-slow: export OPENBLAS_NUM_THREADS = 1

test: $(READY) ## run the tests and the doctests
	@$(COMPILE)
	@echo "The tests and the doctests: up to 8 minutes on two cores"
	@exec $(PY) -m pytest -p no:nbval --numprocesses logical --dist worksteal --durations=10

lint: $(MORE) ## check style, types, public docstrings and the configuration
	@$(PY) -m ruff check --output-format concise .
	@$(PY) -m mypy
	@$(PY) -m workflow.check_parameters
	@$(PY) -m workflow.check_docstrings

notebooks: $(READY) ## execute the notebooks in place, to be committed (ONLY=paper/figure)
	@exec $(PY) -m workflow.checks.committed_notebooks refresh $$ONLY

claims: $(READY) ## judge the papers' statements by the published records, and render docs/claims (RECORDS=folder: a trial)
	@exec $(PY) -m workflow.publishing.claims $(if $(RECORDS),--records "$$RECORDS" --profile "$$PROFILE")

docs: $(MORE) ## build the site in build/site/html
	@exec $(PY) -m workflow.publishing.site

clean: ## remove the results of batches
	rm -rf build .snakemake .pytest_cache .ruff_cache .mypy_cache .hypothesis

#: Your own data, and pages to look at

# What was given to make on its command line, so that a misspelt parameter is an error.
OWN = $(filter-out PYTHON VENV,$(foreach name,$(.VARIABLES),$(if $(filter command,$(origin $(name))),$(name))))

own-data: $(READY) ## leakage and budgets for your own file (FILE=my.csv USER=user TIME=day STATE=place ALPHA=1 HORIZON=30)
	@exec $(PY) -m workflow.batch.own_data $(OWN)

explore: $(READY) ## serve the interactive notebook as a page (PORT=8866)
	@exec $(PY) -m workflow.serving.explore $(if $(PORT),--port $(PORT))

lab: $(READY) ## open JupyterLab, with a page that says what is where (PORT=8888)
	@exec $(PY) -m workflow.serving.lab $(if $(PORT),--port $(PORT))

#: Further checks

check: $(MORE) ## run every command that the documents name, by config/gate.yaml, in 12 minutes (ONLY="make docs")
	@exec $(PY) -m workflow.checks.gate $(if $(ONLY),"$$ONLY")

test-slow: $(READY) ## run the tests that are too long for every day
	@$(COMPILE); $(PY) -m pytest -m slow -p no:nbval --numprocesses logical --dist worksteal --durations=10

# A network that does not answer ends as an error after ten minutes.
AS_ROOT := $(if $(filter-out 0,$(shell id -u)),sudo --non-interactive )timeout 600 env DEBIAN_FRONTEND=noninteractive
APT := $(AS_ROOT) apt-get --quiet=2 -o Acquire::Retries=2 -o Acquire::http::Timeout=30 -o DPkg::Lock::Timeout=120

test-browser: $(READY) ## open the interactive page in Chromium, installed by apt-get where missing (CHROMIUM=/path)
	@[ -n "$(CHROMIUM)" ] || { $(APT) update && $(APT) install --yes --no-install-recommends chromium fonts-dejavu-core; }
	@CHROMIUM="$(or $(CHROMIUM),chromium)" $(PY) -m pytest -m browser tests/browser --durations=5

test-notebooks: $(READY) ## compare the committed notebooks with a new run (ONLY=paper/figure)
	@exec $(PY) -m workflow.checks.committed_notebooks check $$ONLY

docs-links: $(MORE) ## follow the site's links to elsewhere, over the network
	@exec $(PY) -m workflow.publishing.site linkcheck

claims-mutate: $(READY) ## change the records (CODE=1: the code) on purpose; an error for claims that do not notice (ONLY=tkde2019#theorem-1)
	@exec $(PY) -m pytest -p no:nbval -q --tb=short -m "$(if $(CODE),,not )slow" tests/workflow/publishing/test_claims_notice.py \
	    $(if $(ONLY),-k "$$(echo "$$ONLY" | sed 's|\([^ ]*\)#\([^ ]*\)|[\1/\2]|g; s| | or |g')")

mutate: $(READY) ## change the modules that promises rest on, one operator at a time, and write docs/mutation.md (ONLY=room)
	@$(COMPILE); $(PY) -m benchmarks.mutation $$ONLY

#: To change something

format: $(READY) ## format the Python files
	@$(PY) -m ruff format .

size: $(READY) ## how much there is to read in each room, and how dense it is
	@$(PY) benchmarks/size.py

# uv resolves for every platform and every Python from 3.11. It keeps the versions in its output file, so only what must change
# does. The files hold names, versions and hashes; no address of a package index enters them.
LOCKING := build/lock
PINNED_EXTRAS := counts dask data events solvers
RESOLVE := PYTHONPATH=$(LOCKING) $(PY) -m uv pip compile --quiet --universal --generate-hashes --no-annotate --no-header \
	--no-emit-package tplrepro --python-version 3.11 $(PINNED_EXTRAS:%=--extra=%) --group lock pyproject.toml
# Of two files of pins, those that the second has alone, with their hashes.
BEYOND := awk 'NR == FNR {known[$$0]; next} /^[^ ]/ {is_new = !($$0 in known)} is_new'

lock: $(READY) ## pin the environment anew from pyproject.toml (ARGS=--upgrade)
	@mkdir -p $(LOCKING)
	@$(PY) -m pip install --quiet --disable-pip-version-check --upgrade --target $(LOCKING) uv
	@cat requirements.lock requirements-more.lock > $(LOCKING)/all.txt
	@$(RESOLVE) --group more --output-file $(LOCKING)/all.txt $$ARGS
	@cp $(LOCKING)/all.txt $(LOCKING)/figures.txt
	@$(RESOLVE) --output-file $(LOCKING)/figures.txt $$ARGS
	@echo "# Environment of make figures and make test: names, versions and hashes. Written by make lock." > requirements.lock
	@cat $(LOCKING)/figures.txt >> requirements.lock
	@echo "# What make docs, make article and PROFILE=paper need beyond requirements.lock. Written by make lock." > requirements-more.lock
	@$(BEYOND) $(LOCKING)/figures.txt $(LOCKING)/all.txt >> requirements-more.lock
	@exec $(PY) -m workflow.environment.conda

clean-all: clean ## remove the environment as well
	rm -rf .venv

#: To measure and to publish

article: $(MORE) ## render the articles as PDFs in build/articles, with the numbers of the claims
	@exec $(PY) -m workflow.publishing.articles

bench: $(READY) ## measure, and write docs/benchmarks.md
	@exec $(PY) -m benchmarks.run

bench-users: $(READY) ## leakage of ten million users on two workers of Dask, one of them killed (USERS=1000000)
	@exec $(PY) -m benchmarks.run users

bench-cold: $(READY) ## measure first calls alone, in an empty cache of compiled kernels
	@exec $(PY) -m benchmarks.run cold

publish-figures: $(READY) ## copy the paper profile's figures into figures/, to be committed
	@exec $(PY) -m workflow.publishing.publish_figures
