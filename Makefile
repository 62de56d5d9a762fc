# Everything from a fresh clone, with Python, a C compiler and pip: `make demo`, `make test`.
#
# Where things live (all ignored by git, all removed by `make clean`):
#   .venv         the tools of requirements-dev.txt, and Stator installed by pip in its release form
#   build/test    Stator with asserts on and fault injection, in build/test/lib; tests put that
#                 folder before .venv by PYTHONPATH
#   build/asan    the same, with sanitizers
# For another Python give both PYTHON=path and SUFFIX=-3.12: the folders become .venv-3.12,
# build/test-3.12. WITH=folder puts packages of that folder within reach of the tests (another torch).
# Test arguments go through ARGS: make test ARGS='tests/diff -k closure'. Tests run in JOBS processes,
# one a core; ARGS='-n0 -s' for one that has the terminal.

SUFFIX ?=
ARGS   ?=
WITH   ?=
JOBS   ?= $(shell nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
# The first of these that runs and is supported; asked for only when .venv has to be made.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
    $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null \
    && command -v $$p && break; done)

VENV    := .venv$(SUFFIX)
PY      := $(VENV)/bin/python
RELEASE := build/release$(SUFFIX)
TEST    := build/test$(SUFFIX)
ASAN    := build/asan$(SUFFIX)

C_FILES  := $(shell find src -name '*.[ch]')
BUILT_OF := $(shell find src python -type f -not -name '*.pyc') \
    pyproject.toml meson.build meson.options

export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Neither builds nor tests depend on what a user's shell says about Python, or about colours.
unexport $(filter-out PYTHON,$(filter PYTHON% PYTEST%,$(.VARIABLES))) NO_COLOR FORCE_COLOR

.PHONY: help demo bench wheels test test-full test-all test-asan test-debug fuzz mutants regen check lint format clean
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

# -- setting up --------------------------------------------------------------------------------

# Debian's Python may lack ensurepip; its own pip can then fill the environment. Builds go, since
# meson remembers the Python it found.
$(VENV)/.tools: requirements-dev.txt
	@test -n "$(PYTHON)" || { echo "no Python 3.11, 3.12 or 3.13 found; give PYTHON=path"; exit 1; }
	@$(PY) -m pip --version >/dev/null 2>&1 || "$(PYTHON)" -m venv --clear $(VENV) || \
	    { "$(PYTHON)" -m venv --clear --without-pip $(VENV) && \
	    "$(PYTHON)" -m pip --python $(PY) install -q pip; }
	$(PY) -m pip install -q -r requirements-dev.txt
	@rm -rf build/*$(SUFFIX) && touch $@

$(VENV)/.stator: $(VENV)/.tools $(BUILT_OF)
	@mkdir -p build
	$(PY) -m pip install -q --no-build-isolation --no-deps --config-settings=build-dir=$(RELEASE) .
	@touch $@

# $(call build,folder,meson options): installed afresh, so that a file taken out of the package is
# gone.
MESON := $(PY) -m mesonbuild.mesonmain
define build
	@mkdir -p build && test -f $(1)/build.ninja || $(MESON) setup $(1) --prefix $(CURDIR)/$(1) \
	    -Dpython.platlibdir=lib -Dpython.purelibdir=lib $(2) > $(1).log || { cat $(1).log; exit 1; }
	@ninja -C $(1)
	@rm -rf $(1)/lib && $(MESON) install -C $(1) --quiet --no-rebuild
endef

$(TEST)/.built: $(VENV)/.tools $(BUILT_OF)
	$(call build,$(TEST),-Dbuildtype=debugoptimized -Dasserts=true -Dfault=true)
	@touch $@

$(ASAN)/.built: $(VENV)/.tools $(BUILT_OF)
	$(call build,$(ASAN),-Dbuildtype=debugoptimized -Dasserts=true -Dfault=true \
	    -Db_sanitize=address$(comma)undefined -Db_lundef=false \
	    -Dc_args=-fno-sanitize-recover=undefined)
	@touch $@

comma := ,

# -- running -----------------------------------------------------------------------------------

# A process starts with a run of neighbours, so that they share what a module sets up, and takes over
# from others when it has none left.
SPREAD := -n $(JOBS) --dist worksteal
PYTEST := PYTHONPATH=$(CURDIR)/$(TEST)/lib$(addprefix :,$(WITH)) $(PY) -m pytest $(SPREAD)

demo: $(VENV)/.stator ## a model compiled by Stator, next to torch's own Dynamo
	$(PY) -m stator.demo $(ARGS)

bench: $(VENV)/.stator ## figures next to stock Dynamo: table, JSON, chart
	$(PY) bench/run.py $(ARGS)

wheels: $(VENV)/.tools ## an sdist, and wheels for all supported Pythons, each tried out: build/dist
	$(PY) tools/wheels.py $(ARGS)

test: $(VENV)/.stator $(TEST)/.built ## the tests, less the long ones
	$(PYTEST) $(ARGS)

test-full: $(VENV)/.stator $(TEST)/.built ## the tests, with the long ones
	STATOR_FULL=1 $(PYTEST) $(ARGS)

test-all: ## test-full on every supported Python that is found
	tools/each_python $(MAKE) test-full ARGS="$(ARGS)"

# gcc's and clang's names for the runtime; only the one that exists is printed with its folder.
SANITIZER = $(firstword $(foreach l,libasan.so libclang_rt.asan-$(shell uname -m).so, \
    $(filter /%,$(shell $(CC) -print-file-name=$(l)))))

# The sanitizer looks for C++'s throw when it is loaded: torch throws.
STDCXX = $(filter /%,$(shell $(CC) -print-file-name=libstdc++.so.6))

# Frames are several times larger under the sanitizer: recursion tests need the bigger stack.
# CPython itself leaks at exit by design, so leaks are left to tests/leak.
test-asan: $(VENV)/.stator $(ASAN)/.built ## tests/diff, stage and fault under sanitizers
	@test -n "$(SANITIZER)" || { echo "$(CC) has no address sanitizer runtime"; exit 1; }
	ulimit -s 65536 2>/dev/null; LD_PRELOAD="$(SANITIZER) $(STDCXX)" PYTHONMALLOC=malloc \
	    ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 \
	    PYTHONPATH=$(CURDIR)/$(ASAN)/lib $(PY) -m pytest $(SPREAD) \
	    $(or $(ARGS),$(wildcard tests/diff tests/stage tests/fault))

DEBUG_PYTHON ?= python3.11-dbg
test-debug: ## the tests on a CPython with its own asserts on
	@command -v $(DEBUG_PYTHON) >/dev/null || { echo "$(DEBUG_PYTHON) not found: on Debian," \
	    "apt-get install python3.11-dbg; elsewhere give DEBUG_PYTHON=path"; exit 1; }
	$(MAKE) test PYTHON=$(DEBUG_PYTHON) SUFFIX=-debug

PROGRAMS ?= 20000
fuzz: $(VENV)/.stator $(TEST)/.built ## PROGRAMS=20000 random programs, both engines compared
	PYTHONPATH=$(CURDIR)/$(TEST)/lib $(PY) tests/fuzz/run.py $(PROGRAMS) --out $(TEST)/fuzz $(ARGS)

mutants: $(VENV)/.stator $(TEST)/.built ## rows of tables made laxer, one at a time: which no test notices
	PYTHONPATH=$(CURDIR)/$(TEST)/lib$(addprefix :,$(WITH)) $(PY) tools/mutants.py --jobs $(JOBS) $(ARGS)

regen: ## rewrite the golden dumps of tests/stage on every supported Python; read the diff
	STATOR_REGEN=1 tools/each_python $(MAKE) test ARGS='tests/stage'

# -- reading -----------------------------------------------------------------------------------

PYTHON_DIRS := $(wildcard python tools tests bench)

check: $(VENV)/.tools ## ruff, mypy, clang-format, order of rooms, names in the docs
	$(PY) -m ruff check $(PYTHON_DIRS)
	$(PY) -m ruff format --check $(PYTHON_DIRS)
	$(PY) -m mypy
	clang-format --dry-run -Werror $(C_FILES)
	$(PY) tools/check_includes.py
	$(PY) tools/check_docs.py

lint: check ## check, and warnings of gcc and clang
	@for cc in gcc clang; do command -v $$cc >/dev/null || { echo "$$cc: not here"; continue; }; \
	    echo "$$cc -Wall -Wextra -Werror"; $(MAKE) -s warnings CC=$$cc || exit 1; done

.PHONY: warnings
warnings: $(VENV)/.tools
	$(call build,build/lint-$(CC)$(SUFFIX),--werror -Dbuildtype=debugoptimized)

format: $(VENV)/.tools ## rewrite C and Python as lint wants them
	$(PY) -m ruff check -q --fix-only --select I $(PYTHON_DIRS)
	$(PY) -m ruff format $(PYTHON_DIRS)
	clang-format -i $(C_FILES)

clean: ## remove all that make made
	rm -rf build .venv .venv-* .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find $(PYTHON_DIRS) -name __pycache__ -prune -exec rm -rf {} +
