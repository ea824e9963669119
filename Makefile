# `make demo` shows rankcore at work, `make test` tests it; both from a fresh clone. CI also runs
# `sanitize` and `release` each time, and the rest of `make deep` each night.
# The pieces run alone too: lint types doctests check, oldest sanitize nightly release.

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
KERNEL_TESTS := $(patsubst %,tests/test_%.py,rows prank cusum kernel kernel_budgets rivals ensemble mixing \
	persistence pairwise pairwise_fits boosting tree_grower tree_boosting tree_tiles focus \
	pair_loss ranksvm decimals letor letor_batches letor_writer trec measures concordance \
	pair_measures contributions calibrated hostile model_file model_file_limits predictor concurrency random_state) \
	tests/clicks/test_click_models.py tests/interleaving/test_methods.py
# Builds and installs take both processors; workers that are killed are a test for itself.
SLOW_TESTS = $(filter-out %/test_dask_faults.py,$(shell grep -rl 'mark\.slow' tests --include='test_*.py'))
# Half of the files to each of two workers: a fixture of a file is mostly made once.
PYTEST := python -m pytest -n auto --dist worksteal
# The first release of scikit-learn that is supported has wheels for these interpreters.
OLDEST_PYTHON ?= $(shell for python in python3.11 python3.12 $(PYTHON) \
	$(HOME)/.pyenv/versions/3.1[12].*/bin/python; do \
	$$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' \
	2>/dev/null && echo $$python && break; done)

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# pytest has a worker for each processor: threads of BLAS beside them only wait for each other.
export OPENBLAS_NUM_THREADS ?= 1
export PATH := $(CURDIR)/$(VENV):$(PATH)

.PHONY: demo demo-cluster test lint audit types doctests check deep oldest sanitize nightly release \
	rehearse faults elsewhere services mutants bench wasm docs docs-quick browser clean
ifndef TOGETHER
.NOTPARALLEL:
endif

# setuptools packs what it finds in build/lib, modules that are gone included.
demo: .venv/made
	rm -rf build/lib.*
	$(VENV)/pip install -q ".[cli,plot]"
	$(VENV)/rankcore demo

demo-cluster: .venv/made
	rm -rf build/lib.*
	$(VENV)/pip install -q ".[dask]"
	$(VENV)/python examples/cluster/demo.py

# What takes one processor runs beside the suite, or the others would be idle meanwhile.
# `check` takes longest: its closing line is the one to read.
test: lint
	$(MAKE) -j 3 TOGETHER=1 types doctests check

deep: oldest sanitize nightly release

lint: .venv/installed
	ruff check
	ruff format --check
	cython-lint src
	clang-format --dry-run -Werror $(C_FILES)
	codespell $(wildcard *.md *.py *.toml Makefile src tests examples benchmarks reproduce docs \
		packaging changes .github)

# Workflows, the citation, news fragments and the conda recipe, each by its own tool, offline.
audit: .venv/made
	$(VENV)/python -m venv .venv-audit
	.venv-audit/bin/pip install -q -r packaging/audit.txt
	.venv-audit/bin/zizmor --offline --no-progress --persona auditor .github
	.venv-audit/bin/cffconvert --validate
	.venv-audit/bin/towncrier build --draft --version next
	.venv-audit/bin/python packaging/render.py

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
	HYPOTHESIS_PROFILE=quick $(PYTEST) -q --capture=sys $(KERNEL_TESTS)
else
sanitize:
	@echo "sanitize: not run, it needs Linux and GCC"
endif

# The oldest releases that pyproject.toml allows.
ifneq ($(OLDEST_PYTHON),)
oldest: .venv/installed
	rm -rf .venv-oldest
	$(OLDEST_PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/pip install -q -c tests/oldest-constraints.txt "$(WHEEL)[dask,plot,test]" polars
	HYPOTHESIS_PROFILE=quick .venv-oldest/bin/$(PYTEST) -q -m "not slow"
else
oldest:
	@echo "oldest: not run, no CPython 3.11 or 3.12 was found (set OLDEST_PYTHON)"
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

# A release but for publishing: TESTS=tests/test_prank.py runs less than everything.
rehearse: .venv/made
	$(VENV)/python packaging/rehearse.py build/rehearsal $(TESTS)

# Ten times as many examples of every property, and all cases of what is sampled.
nightly: .venv/installed
	HYPOTHESIS_PROFILE=nightly $(PYTEST) -q -m "hypothesis or sampled"

# Twenty workers of a Dask cluster are killed at random moments.
faults: .venv/installed
	RANKCORE_FAULTS=1 python -m pytest -q tests/test_dask_faults.py

# The C code on other processors and systems, and the examples in other languages; what is not
# installed is skipped by name. RANKCORE_FUZZ_SECONDS=600: the fuzzer for ten minutes on each.
elsewhere: .venv/installed
	$(VENV)/pip install -q "$(WHEEL)[elsewhere]"
	python -m pytest -q -rs --durations=20 tests/elsewhere/test_*.py

# examples/services with the programs they are for, none of which the suite requires.
services: .venv/installed
	rm -rf .venv-services
	$(PYTHON) -m venv .venv-services
	.venv-services/bin/pip install -q "$(WHEEL)[services]"
	PATH="$(CURDIR)/.venv-services/bin:$$PATH" RANKCORE_DIST=$(CURDIR)/$(DIST) \
		.venv-services/bin/python -m pytest -q -rs tests/test_services.py tests/test_export_postgres.py

# Changes of one token in the sources, which the tests should notice: some hours, once a release.
mutants: .venv/installed
	$(VENV)/pip install -q "cosmic-ray>=8.7,<9" "pytest-cov>=7"
	python tests/mutants.py collect
	python tests/mutants.py run

bench: .venv/installed
	python -m benchmarks $(BENCH)

# The shared library for browsers, beside its module: web/README.md.
wasm: .venv/docs
	$(VENV)/python web/compile.py build/web

# Warnings are errors. No network: -j auto only shares the work among processors.
docs: wasm
	$(VENV)/sphinx-build -W --keep-going -q -j auto docs build/site

# Examples are not run; their pictures are those of the last `make docs`, if there are any.
docs-quick: wasm
	RANKCORE_DOCS_QUICK=1 $(VENV)/sphinx-build -W --keep-going -q -j auto docs build/site

# Every page in Chromium, which the system provides.
browser: docs-quick
	$(VENV)/pip install -q "$(WHEEL)[browser,test]"
	$(PYTEST) -q tests/test_site_browser.py

clean:
	rm -rf build .venv .venv-oldest .venv-services .venv-audit src/rankcore.egg-info
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
