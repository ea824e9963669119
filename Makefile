# `make demo` shows rankcore at work, `make test` tests it; both from a fresh clone. `make test` is
# lint, types, doctests and check. CI runs `sanitize`, `release` and `docs-quick` as well.

PYTHON ?= python3
BENCH ?= prank

# For work: an editable install, which `make kernels` keeps up to date.
ENV := .venv
# For tests of what users receive: the wheel that is built from the sdist. `make test` runs all there.
WHEEL_ENV := build/venv
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
export PATH := $(CURDIR)/$(ENV)/bin:$(PATH)
check sanitize release docs docs-quick: export PATH := $(CURDIR)/$(WHEEL_ENV)/bin:$(PATH)

.PHONY: demo kernels test lint types doctests check sanitize release bench docs docs-quick clean
ifndef TOGETHER
.NOTPARALLEL:
endif

demo: .venv/made
	.venv/bin/pip install -q -e ".[cli,plot]"
	.venv/bin/rankcore demo

# Build in place what depends on an edited .pyx, .pxd or .h, in seconds.
kernels:
	python setup.py -q build_ext --inplace

# What takes one processor runs beside the suite, or the others would be idle meanwhile.
# `check` takes longest: its closing line is the one to read.
test:
	$(MAKE) ENV=$(WHEEL_ENV) lint
	$(MAKE) -j 3 TOGETHER=1 ENV=$(WHEEL_ENV) types doctests check

lint: $(ENV)/installed
	ruff check
	ruff format --check
	cython-lint src
	clang-format --dry-run -Werror $(C_FILES)
	codespell $(wildcard *.md *.py *.toml Makefile src tests examples benchmarks reproduce docs \
		packaging .github)

# stubtest reports all that `mypy src/rankcore` does: it analyses the same files with the same flags.
types: $(ENV)/installed
	stubtest rankcore --mypy-config-file pyproject.toml \
		--allowlist tests/stubtest-allowlist.txt

# The same kernels with Cython's bounds checks, under the address and undefined-behaviour sanitizers
# of GCC. Reports go past pytest's capture, which a process that is stopped takes with it.
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined \
	-fno-omit-frame-pointer -fno-wrapv
# libstdc++ too: the sanitizer looks for its exceptions when it starts, SciPy throws them later.
RUNTIMES = $(foreach name,asan ubsan stdc++,$(shell gcc -print-file-name=lib$(name).so))

ifeq ($(shell uname),Linux)
sanitize: $(WHEEL_ENV)/installed
	$(call install_apart,sanitize,RANKCORE_CHECKED=1 CC=gcc CFLAGS="$(SANITIZE)" LDFLAGS="$(SANITIZE)")
	LD_PRELOAD="$(RUNTIMES)" PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0 \
	UBSAN_OPTIONS=print_stacktrace=1 PYTHONPATH=build/sanitize/site \
	HYPOTHESIS_PROFILE=quick $(PYTEST) -q --capture=sys -m kernel $(KERNEL_TESTS)
else
sanitize:
	@echo "sanitize: not run, it needs Linux and GCC"
endif

# Docstrings and guides.
doctests: $(ENV)/installed
	python -m pytest -q --doctest-modules --doctest-glob='*.md' --ignore-glob='docs/**/*.py' \
		--ignore=docs/conf.py --pyargs rankcore docs

check: $(WHEEL_ENV)/installed
	$(PYTEST) -m "not slow"

# What users receive: the sdist and the wheel that were tested, on every CPython that is found.
release: $(WHEEL_ENV)/installed
	RANKCORE_DIST=$(CURDIR)/$(DIST) $(PYTEST) -m slow $(SLOW_TESTS)
	python -m pytest -m slow tests/test_dask_faults.py

bench: $(ENV)/installed
	python -m benchmarks $(BENCH)

# The scorer for browsers, compiled to WebAssembly.
WASM = python web/compile.py build/web

# Warnings are errors. No network: -j auto only shares the work among processors.
docs: $(WHEEL_ENV)/docs
	$(WASM)
	sphinx-build -W --keep-going -q -j auto docs build/site

# Examples are not run; their pictures are those of the last `make docs`, if there are any.
docs-quick: $(WHEEL_ENV)/docs
	$(WASM)
	RANKCORE_DOCS_QUICK=1 sphinx-build -W --keep-going -q -j auto docs build/site

clean:
	rm -rf build .venv src/rankcore.egg-info
	find src -name '*.so' -delete
	git clean -qfdX docs

.venv/made $(WHEEL_ENV)/made:
	$(PYTHON) -m venv $(@D)
	touch $@

# pip builds what has changed, as `make kernels` does, and installs no wheel.
.venv/installed: pyproject.toml | .venv/made
	.venv/bin/pip install -q -e ".[dev]"
	touch $@

# Warnings are errors here, and only here: a user's compiler may know some that ours does not.
$(DIST)/made: $(SOURCES) | $(WHEEL_ENV)/made
	rm -rf $(DIST)
	mkdir -p $(DIST)
	$(WHEEL_ENV)/bin/pip install -q build==1.6.1
	RANKCORE_WERROR=1 $(WHEEL_ENV)/bin/python -m build --outdir $(DIST) >build/log 2>&1 || \
		{ cat build/log; exit 1; }
	touch $@

# pip does not replace a version by the same version.
$(WHEEL_ENV)/installed: $(DIST)/made
	$(WHEEL_ENV)/bin/pip uninstall -qq -y rankcore
	$(WHEEL_ENV)/bin/pip install -q "$(WHEEL)[dev]"
	touch $@

$(WHEEL_ENV)/docs: $(WHEEL_ENV)/installed
	$(WHEEL_ENV)/bin/pip install -q "$(WHEEL)[docs]"
	touch $@

# $(call install_apart,NAME,ENVIRONMENT): build the sdist once more, under build/NAME/site.
define install_apart
	rm -rf build/$(1)
	mkdir -p build/$(1)/tree
	tar -xzf $(DIST)/*.tar.gz -C build/$(1)/tree --strip-components=1
	$(2) pip install -q --no-deps --target build/$(1)/site ./build/$(1)/tree
endef
