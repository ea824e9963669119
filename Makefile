# `make demo` shows rankcore at work, `make test` tests it; both from a fresh clone. `make test` is
# lint, types, doctests and check, which also run alone. CI runs `sanitize`, `release` and
# `docs-quick` as well.

PYTHON ?= python3
BENCH ?= prank

VENV := .venv/bin
# Everything that is tested comes out of the sdist, as it does for users.
DIST := build/dist
WHEEL = $$(echo $(DIST)/*.whl)
SOURCES := $(shell find src -type f ! -name '*.so' ! -name '*.pyc' ! -path '*.egg-info*') \
	pyproject.toml setup.py MANIFEST.in README.md LICENSE
C_FILES := $(wildcard src/rankcore/include/*.[ch] src/rankcore/_ext/*.h examples/*/*.[ch] tests/*/*.[ch])
# What reaches the kernels with odd input: these run again with checks compiled in.
KERNEL_TESTS = $(shell grep -rl 'mark\.kernel' tests --include='test_*.py')
# Builds and installs take both processors; workers that are killed are a test for itself.
SLOW_TESTS = $(filter-out %/test_dask_faults.py,$(shell grep -rl 'mark\.slow' tests --include='test_*.py'))
# Half of the files to each of two workers: a fixture of a file is mostly made once.
PYTEST := python -m pytest -n auto --dist worksteal
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# pytest has a worker for each processor: threads of BLAS beside them only wait for each other.
export OPENBLAS_NUM_THREADS ?= 1
export PATH := $(CURDIR)/$(VENV):$(PATH)

.PHONY: demo test lint types doctests check sanitize release bench docs docs-quick clean
ifndef TOGETHER
.NOTPARALLEL:
endif

# setuptools packs what it finds in build/lib, modules that are gone included.
demo: .venv/made
	rm -rf build/lib.*
	$(VENV)/pip install -q ".[cli,plot]"
	$(VENV)/rankcore demo

# What takes one processor runs beside the suite, or the others would be idle meanwhile.
# `check` takes longest: its closing line is the one to read.
test: lint
	$(MAKE) -j 3 TOGETHER=1 types doctests check

lint: .venv/installed
	ruff check
	ruff format --check
	cython-lint src
	clang-format --dry-run -Werror $(C_FILES)
	codespell $(wildcard *.md *.py *.toml Makefile src tests examples benchmarks reproduce docs \
		packaging .github)

# stubtest reports all that `mypy src/rankcore` does: it analyses the same files with the same flags.
types: .venv/installed
	stubtest rankcore --mypy-config-file pyproject.toml \
		--allowlist tests/stubtest-allowlist.txt

# The same kernels with Cython's bounds checks, under the address and undefined-behaviour sanitizers
# of GCC. Reports go past pytest's capture, which a process that is stopped takes with it.
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined \
	-fno-omit-frame-pointer -fno-wrapv
# libstdc++ too: the sanitizer looks for its exceptions when it starts, SciPy throws them later.
RUNTIMES = $(foreach name,asan ubsan stdc++,$(shell gcc -print-file-name=lib$(name).so))

ifeq ($(shell uname),Linux)
sanitize: .venv/installed
	$(call install_apart,sanitize,RANKCORE_CHECKED=1 CC=gcc CFLAGS="$(SANITIZE)" LDFLAGS="$(SANITIZE)")
	LD_PRELOAD="$(RUNTIMES)" PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0 \
	UBSAN_OPTIONS=print_stacktrace=1 PYTHONPATH=build/sanitize/site \
	HYPOTHESIS_PROFILE=quick $(PYTEST) -q --capture=sys -m kernel $(KERNEL_TESTS)
else
sanitize:
	@echo "sanitize: not run, it needs Linux and GCC"
endif

# Docstrings and guides.
doctests: .venv/installed
	python -m pytest -q --doctest-modules --doctest-glob='*.md' --ignore-glob='docs/**/*.py' \
		--ignore=docs/conf.py --pyargs rankcore docs

check: .venv/installed
	$(PYTEST) -m "not slow"

# What users receive: the sdist and the wheel that were tested, on every CPython that is found.
release: .venv/installed
	RANKCORE_DIST=$(CURDIR)/$(DIST) $(PYTEST) -m slow $(SLOW_TESTS)
	python -m pytest -m slow tests/test_dask_faults.py

bench: .venv/installed
	python -m benchmarks $(BENCH)

# The scorer for browsers, compiled to WebAssembly.
WASM := $(VENV)/python web/compile.py build/web

# Warnings are errors. No network: -j auto only shares the work among processors.
docs: .venv/docs
	$(WASM)
	$(VENV)/sphinx-build -W --keep-going -q -j auto docs build/site

# Examples are not run; their pictures are those of the last `make docs`, if there are any.
docs-quick: .venv/docs
	$(WASM)
	RANKCORE_DOCS_QUICK=1 $(VENV)/sphinx-build -W --keep-going -q -j auto docs build/site

clean:
	rm -rf build .venv src/rankcore.egg-info
	find src -name '*.so' -delete
	git clean -qfdX docs

.venv/made:
	$(PYTHON) -m venv .venv
	touch $@

# Warnings are errors here, and only here: a user's compiler may know some that ours does not.
$(DIST)/made: $(SOURCES) | .venv/made
	rm -rf $(DIST)
	mkdir -p $(DIST)
	$(VENV)/pip install -q build==1.6.1
	RANKCORE_WERROR=1 $(VENV)/python -m build --outdir $(DIST) >build/log 2>&1 || \
		{ cat build/log; exit 1; }
	touch $@

# pip does not replace a version by the same version.
.venv/installed: $(DIST)/made
	$(VENV)/pip uninstall -qq -y rankcore
	$(VENV)/pip install -q "$(WHEEL)[dev]"
	touch $@

.venv/docs: .venv/installed
	$(VENV)/pip install -q "$(WHEEL)[docs]"
	touch $@

# $(call install_apart,NAME,ENVIRONMENT): build the sdist once more, under build/NAME/site.
define install_apart
	rm -rf build/$(1)
	mkdir -p build/$(1)/tree
	tar -xzf $(DIST)/*.tar.gz -C build/$(1)/tree --strip-components=1
	$(2) $(VENV)/pip install -q --no-deps --target build/$(1)/site ./build/$(1)/tree
endef
