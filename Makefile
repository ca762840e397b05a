# Everything runs from .venv in the checkout; each target sets it up first.
# A machine may forbid bytecode files; ours are ignored by git, and each process would compile 700 modules without them.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
.PHONY: help setup setup-demo setup-up compile wheels release demo up test test-compiled test-foreign test-release test-lab check check-style check-types check-units coverage format fuzz lock bench bench-orders bench-pipelines race simulate protos diagrams site

PYTHON_IN_VENV := .venv/bin/python
TESTS ?= tutorials tests/e2e tests/component tests/unit packages
FOREIGN ?= $(notdir $(wildcard tests/foreign/[a-z]*))
# The folders with the longest files: they come first, so that no process ends long before the others.
LONG_FOREIGN := windows docker pythons package spark
# What a test outside of tests/foreign may need all the same is a marker.
NEEDS := docker or java or ports or postgresql
OWN = -m "not ($(NEEDS) or worlds)"
FOREIGN_TESTS = foreign or $(NEEDS)
# What lands runs without the further versions, Pythons and engines of a claim, which are marked `release`; named folders run whole.
NOT_OWN = -m "$(if $(filter undefined file,$(origin FOREIGN)),($(FOREIGN_TESTS)) and not release,$(FOREIGN_TESTS))"
# A chapter's test that plays long simulated worlds is marked so, and make test-lab runs it.
WORLDS := tutorials/take-the-barrier-out/test_barrier_out.py
# Files side by side, a process for each processor; in the order they are found: the long ones come first.
# All tests together wait for half of their time: half as many processes more use it. With more, Apache's brokers get too little.
LANES := logical
test test-foreign test-release test-lab: LANES := $(shell expr `getconf _NPROCESSORS_ONLN` '*' 3 / 2)
SIDE_BY_SIDE = -n $(LANES) --dist loadfile --no-loadscope-reorder
CORE := message protocol store transaction filter

# With COMPILED=1 a target runs the broker that `make compile` makes in build/compiled. Without it tests run the Python source,
# and what is demonstrated or measured runs the compiled broker where build/compiled is of this very source (COMPILED=0: never).
ON_BEST_BUILD := deploy/scripts/broker-build
ifeq ($(COMPILED),1)
export ROCKETMQ_BROKER_COMPILED := 1
export PYTHONPATH := $(CURDIR)/build/compiled
endif

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Make .venv from requirements.lock, step by step; find or install Java 17 and redis-server
	@deploy/scripts/setup
ifeq ($(COMPILED),1)
	@deploy/scripts/compile
endif

# What demo and up need alone is half of .venv, and up's first screen needs a quarter of that; a .venv with everything serves them, too.
setup-demo setup-up:
	@deploy/scripts/setup $(if $(filter 1,$(COMPILED)),all,$(@:setup-%=%))
ifeq ($(COMPILED),1)
	@deploy/scripts/compile
endif

compile: ## Compile the broker's hot modules into build/compiled, for demo, up and bench, and any target with COMPILED=1
	@$(MAKE) --no-print-directory setup COMPILED=1

wheels: setup ## Build the wheels into dist: compiled for each CPython 3.11 to 3.14 of this machine, and one for any Python (COMPILED=0: that one alone)
	@$(PYTHON_IN_VENV) -m deploy.scripts.build_wheels $(if $(filter 0,$(COMPILED)),--pure)

release: setup ## Build and check into dist what a release publishes: wheels, sdist, SBOM, notes, hashes, image; it publishes nothing (COMPILED=0: pure)
	@$(PYTHON_IN_VENV) -m deploy.scripts.release $(if $(filter 0,$(COMPILED)),--pure) $(REPOSITORY:%=--repository %)

demo: setup-demo ## Run orders through broker, services and kills; end with the reconciliation's table
	@$(ON_BEST_BUILD) $(PYTHON_IN_VENV) -m demo $(DEMO)

up: setup-up ## Start everything with a console in the browser; keep it running until Ctrl-C (UP="--orders-every 2", UP="--help")
	@exec $(ON_BEST_BUILD) $(PYTHON_IN_VENV) -m demo.up --install-spark $(UP)

test: setup ## Run the tests that need no foreign program: no Java broker, no Docker, no PostgreSQL (TESTS=tests/unit/... for some of them)
	@$(PYTHON_IN_VENV) -m pytest $(SIDE_BY_SIDE) $(OWN) --durations=25 --durations-min=5 $(TESTS)

test-foreign: setup ## Run the tests with Apache's brokers and clients, Docker, Chromium, Firefox, PostgreSQL, Spark by command, wheels (FOREIGN="docker package" for all of some)
	@$(PYTHON_IN_VENV) -m pytest $(SIDE_BY_SIDE) $(NOT_OWN) --durations=25 --durations-min=5 \
	  $(patsubst %,tests/foreign/%,$(filter $(FOREIGN),$(LONG_FOREIGN))) \
	  $(if $(filter-out undefined file,$(origin FOREIGN)),,$(TESTS)) \
	  $(patsubst %,tests/foreign/%,$(filter-out $(LONG_FOREIGN),$(FOREIGN)))

test-release: setup ## Run the foreign tests that make test-foreign leaves out: other versions, Pythons, Windows, clusters; before a release
	@$(PYTHON_IN_VENV) -m pytest $(SIDE_BY_SIDE) -m release --durations=25 --durations-min=5 \
	  $(patsubst %,tests/foreign/%,$(LONG_FOREIGN) $(filter-out $(LONG_FOREIGN),$(FOREIGN)))

test-lab: setup ## Run the tests of simulated worlds and planted bugs, and fuzz
	@$(PYTHON_IN_VENV) -m pytest $(SIDE_BY_SIDE) --durations=25 --durations-min=5 tests/lab $(WORLDS)

test-compiled: ## Run what the broker does on the compiled broker: unit and component tests, crashes, conformance, real processes
	@$(MAKE) --no-print-directory test COMPILED=1 OWN='-m "not docker"' \
	  TESTS="$(wildcard $(foreach package,$(CORE) server remoting app testing,tests/unit/$(package) tests/component/$(package))) tests/unit/test_compiled_modules.py tests/component/client tests/foreign/clients tests/e2e tests/lab/test_sigkill_under_load.py"

check: setup ## The quick check: format, lint, types, import contracts, unit tests (CHANGED=1: the tests of changed packages only)
	@$(MAKE) --no-print-directory --jobs 2 check-style check-types check-units

check-style:
	@.venv/bin/ruff format --check --quiet || { echo "make format puts these right"; exit 1; }
	@.venv/bin/ruff check --quiet
	@told=$$(.venv/bin/lint-imports --no-logo) || { echo "$$told"; exit 1; }

# Windows and macOS have another standard library: what runs there is checked for it, too. Each keeps a cache of its own.
check-types: OTHER_SYSTEMS = darwin win32
check-types: WHEELS = rocketmq_broker rocketmq_commitlog faststream_rocketmq
check-types:
	@.venv/bin/mypy --no-error-summary
	@for system in $(OTHER_SYSTEMS); do .venv/bin/mypy --no-error-summary --platform $$system --cache-dir .mypy_cache/$$system \
	  $(WHEELS:%=-p %) || exit 1; done

# Their folders are in memory where the machine has some for it: what they write is a test of logic, not of a disk.
check-units: IN_MEMORY = $(shell [ `df -Pk /dev/shm 2>/dev/null | awk 'NR==2 {print $$4}'` -gt 2000000 ] 2>/dev/null && echo PYTEST_DEBUG_TEMPROOT=/dev/shm)
check-units:
	@$(IN_MEMORY) $(PYTHON_IN_VENV) -m pytest $(SIDE_BY_SIDE) -m "not slow" --hypothesis-profile=quick -q \
	  $(if $(CHANGED),$$($(PYTHON_IN_VENV) -m deploy.scripts.changed_tests $(CHANGED)),tests/unit packages)

coverage: setup ## Branch coverage of the broker's pure packages by unit tests
	@$(PYTHON_IN_VENV) -m coverage run -m pytest -q $(wildcard $(foreach package,$(CORE) server,tests/unit/$(package) tests/component/$(package)))
	@$(PYTHON_IN_VENV) -m coverage report

bench: setup ## Measure the broker side by side with Apache RocketMQ and a floor (BENCH="--quick", BENCH="--help")
	@$(ON_BEST_BUILD) $(PYTHON_IN_VENV) -m lab.benchmarks $(BENCH)

bench-orders: setup ## Measure orders/s and POST to credit, beside an outbox (BENCH="--seconds 5 --brokers ours")
	@$(ON_BEST_BUILD) $(PYTHON_IN_VENV) -m lab.benchmarks.orders $(BENCH)

bench-pipelines: setup ## Reconcile 1, 5 and 10 million orders with known faults, beside datacompy and DuckDB (BENCH="--orders 100000")
	@$(PYTHON_IN_VENV) -m lab.benchmarks.reconciliation $(BENCH)

fuzz: setup ## Fuzz broker, name server and client by structure for an hour (FUZZ="--minutes 5")
	@$(PYTHON_IN_VENV) -m tests.lab.fuzz $(FUZZ)

race: setup ## Race eleven ways to notify another service under faults; draw build/race.svg (RACE="--orders 100", RACE="--renew-docs" for docs/race.svg)
	@$(PYTHON_IN_VENV) -m tutorials.race --output build/race.json --draw build/race.svg $(RACE)

simulate: setup ## Play simulated worlds under faults (SEEDS=100000 FIRST=1; SEED=4711 for one world; SIMULATE="--help")
	@exec $(PYTHON_IN_VENV) -m lab.simulation $(SEEDS:%=--seeds %) $(FIRST:%=--first %) $(SEED:%=--seed %) $(SIMULATE)

protos: setup ## Compile the .proto of RocketMQ 5's API into what the proxy reads
	@$(PYTHON_IN_VENV) -m deploy.scripts.compile_protos

diagrams: setup ## Draw the site's Mermaid diagrams again, into docs/diagrams (needs chromium and npm)
	@$(PYTHON_IN_VENV) -m deploy.scripts.draw_diagrams

site: setup ## Build the documentation site into build/site, with the page that runs the broker (needs node and npm)
	@NO_MKDOCS_2_WARNING=1 $(PYTHON_IN_VENV) -m mkdocs build --strict --quiet
	@$(PYTHON_IN_VENV) -m deploy.scripts.site_play build/site/play
	@echo "build/site/index.html; with search: .venv/bin/python -m http.server --bind 127.0.0.1 --directory build/site 8000"

format: setup ## Format and sort imports
	@.venv/bin/ruff check --select I --fix --quiet
	@.venv/bin/ruff format

LOCK = uv pip compile --quiet --no-strip-extras --python-version 3.11 --generate-hashes --no-emit-index-url --no-header

lock: ## Renew the lock files from both pyproject.toml (needs uv): everything, what each image needs of it, what compiles the broker, and what writes the SBOM
	$(LOCK) broker/pyproject.toml --extra console --extra grpc --group pyproject.toml:demo --group pyproject.toml:dev -o requirements.lock
	$(LOCK) broker/pyproject.toml --extra console --extra grpc -c requirements.lock -o deploy/docker/broker.lock
	$(LOCK) broker/pyproject.toml --group pyproject.toml:services -c requirements.lock -o deploy/docker/services.lock
	$(LOCK) broker/pyproject.toml --extra console --extra grpc --group pyproject.toml:demo -c requirements.lock -o deploy/docker/demo.lock
	$(LOCK) --group pyproject.toml:compile -c requirements.lock -o deploy/docker/compile.lock
	$(LOCK) --group pyproject.toml:release -o deploy/docker/release.lock
