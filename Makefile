# make run and make test each do all of their set-up; see scripts/setup.
.DEFAULT_GOAL := help
.PHONY: help run test proofs test-pythons test-agents lint check format bench chaos soak release clean

# Without compiled bytecode every start takes three times as long.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
# A make that is started from the app or a test must not take itself for a part of this one.
OUTSIDE_MAKE := unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES;
ARGS ?=

help: ## Say what can be made
	@echo 'make run      start agentmon (arguments: make run ARGS="board --json")'
	@echo 'make test     run the tests (some of them: make test ARGS="tests/runners -k words")'
	@echo 'make proofs   run the slow ones: every picture, every key, random sequences, the demo (make proofs ARGS="-k words")'
	@echo 'make test-pythons  readers, host and store under the oldest and the newest Python here (make test-pythons ARGS="3.12")'
	@echo 'make test-agents  install the real agents and drive them, offline (make test-agents AGENTS="claude codex")'
	@echo 'make check    format, lint, types, import contracts, then the tests and the proofs'
	@echo 'make lint     format, lint, types and import contracts alone'
	@echo 'make format   put the code into its form'
	@echo 'make bench    measure, and print the table'
	@echo 'make chaos    kill everything at random, then check every promise (make chaos ARGS="--minutes 10 --seed 7")'
	@echo 'make soak     a hundred runs and a script at the keys for 20 minutes (make soak ARGS="--minutes 5")'
	@echo 'make release  build and try the archives, then commit and tag (make release VERSION=0.8.0)'
	@echo 'make clean    remove what was built; .venv stays'

run:
	@scripts/setup run
	@$(OUTSIDE_MAKE) $(BIN)/agentmon $(ARGS)

# Many tests wait for programs, so that five for two cores keep these busy.
PYTEST = workers=$$($(BIN)/python -c 'import os; print(5 * (os.cpu_count() or 2) // 2)') && $(BIN)/python -m pytest -n "$$workers"

test:
	@scripts/setup test
	@$(OUTSIDE_MAKE) $(PYTEST) -m "not proof" $(ARGS)

proofs:
	@scripts/setup test
	@$(OUTSIDE_MAKE) $(PYTEST) -m proof $(ARGS)

test-pythons:
	@scripts/setup test
	@$(OUTSIDE_MAKE) scripts/pythons $(ARGS)

AGENTS ?= claude codex gemini opencode

test-agents:
	@scripts/setup test
	@scripts/agents $(AGENTS) >/dev/null
	@$(OUTSIDE_MAKE) AGENTMON_TEST_AGENTS="$(AGENTS)" scripts/offline $(BIN)/python -m pytest -n 2 --timeout 240 \
		-o addopts="-q --strict-markers --strict-config" tests/agents $(ARGS)

lint:
	@scripts/setup test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory proofs

format:
	@scripts/setup test
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

bench:
	@scripts/setup test
	@$(OUTSIDE_MAKE) $(BIN)/python -m benchmarks.run $(ARGS)

chaos:
	@scripts/setup test
	@$(OUTSIDE_MAKE) $(BIN)/python -m benchmarks.chaos $(ARGS)

soak:
	@scripts/setup test
	@$(OUTSIDE_MAKE) $(BIN)/python -m benchmarks.soak $(ARGS)

release:
	@$(MAKE) --no-print-directory check
	@scripts/release "$(VERSION)"

clean:
	@rm -rf build dist .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@rm -f snapshot_report.html
	@find . -path ./.venv -prune -o -path ./.git -prune -o -name __pycache__ -type d -exec rm -rf {} +
