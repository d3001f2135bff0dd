# Every target first runs what it needs: on a fresh machine, `make demo` or `make test` is enough.
# PYTHON chooses the interpreter for setup; ARGS is passed to pytest and to the demos.

PY := .venv/bin/python
SETUP := .venv/.ready
# Empty, so that the many processes of commands and tests find compiled modules.
PYTHONDONTWRITEBYTECODE :=
export PYTHON PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-year test test-deep test-stores in-seaweedfs in-versitygw in-azurite in-gcs soak matrix check lint types contracts house format docs up down dist lock clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(SETUP) ## create .venv from the lock, find Java, fetch Delta's jars (once)

$(SETUP): requirements.lock pyproject.toml tools/setup.sh
	@tools/setup.sh
	@echo "==> Java: $$($(PY) -m sluice.spark.java)"
	@echo "==> Delta's jars:" && $(PY) -m sluice.spark.jars
	@$(PY) tools/smoke.py
	@touch $@

demo: $(SETUP) ## a week of shopping through a real Airflow, then a correction (about 3 minutes)
	@$(PY) tools/demo.py $(ARGS)

demo-year: $(SETUP) ## the whole year, 365 intervals, without Airflow
	@$(PY) tools/demo_year.py $(ARGS)

test: $(SETUP) ## the tests of every behaviour, in ten minutes of two cores
	@$(PY) -m pytest -n 2 --dist loadfile --tier quick --timeout 60 --durations 10 $(ARGS)

test-deep: $(SETUP) ## all other tests: Spark, live Airflow, brokers, stores, browsers, random histories
	@$(PY) -m pytest -n 3 --dist loadfile --no-loadscope-reorder --tier deep $(ARGS)

test-stores: in-seaweedfs in-versitygw in-azurite in-gcs ## kills and races in object stores installed by Go and npm; the demo in one of them

in-seaweedfs: $(SETUP)
	@$(PY) -m pytest tests/stores/retail.py $(ARGS)

# What a server decides: which commit wins, what lists and ranges hold, what a killed process leaves.
# What the code before it decides, `make test-deep` tests on SeaweedFS.
KILLED := test_a_kill_at_an_edge_is_mended_by_running_again
OF_ANY_STORE := $(addprefix tests/stores/test_,exclusive.py opened.py log_cleaning.py lake.py \
	  'crashes.py::$(KILLED)[committing:totals]' 'crashes.py::$(KILLED)[committed:totals__state]' \
	  crashes.py::test_a_zombie_that_wakes_after_another_run_writes_nothing \
	  crashes.py::test_two_runs_of_the_same_interval_at_once_end_as_one \
	  crashes.py::test_logs_and_files_hold_no_secret \
	  environments.py::test_what_a_kill_has_left_is_no_environment_and_goes_a_day_later \
	  environments.py::test_of_several_that_make_one_of_a_name_at_once_one_wins \
	  previews.py::test_it_counts_what_the_run_does_and_leaves_nothing \
	  'marks.py::test_marked_rows_are_left_out_today_and_were_there_before[by_dataset]' \
	  marks.py::test_of_two_commits_of_one_version_one_is_lost \
	  marks.py::test_a_marking_commit_without_an_answer_happens_once \
	  marks.py::test_upkeep_and_rebuilds_leave_no_marks)

in-versitygw: $(SETUP)
	@$(PY) -m pytest --store versitygw $(OF_ANY_STORE) \
	  tests/stores/test_committers.py::test_of_commits_of_one_version_by_both_one_wins \
	  tests/stores/test_committers.py::test_no_commit_of_either_is_lost $(ARGS)

in-azurite: $(SETUP)
	@$(PY) -m pytest --store azurite tests/stores/azure.py $(OF_ANY_STORE) $(ARGS)

in-gcs: $(SETUP)
	@$(PY) -m pytest --store gcs tests/stores/google.py $(OF_ANY_STORE) $(ARGS)

soak: $(SETUP) ## kill 200 runs of random histories; takes at least an hour (make soak ARGS="--minutes 10 --kills 20")
	@PYTHONPATH=tools $(PY) -m tests.crash.soak $(ARGS)

matrix: $(SETUP) ## test the wheel's version ranges with the lowest and the newest versions (a quarter of an hour each)
	@$(PY) tools/matrix.py $(ARGS)

check: lint types contracts house test ## format, lint, types, import contracts, and the tests of `make test`

lint: $(SETUP)
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@.venv/bin/hadolint docker/Dockerfile

types: $(SETUP)
	@$(PY) -m mypy

contracts: $(SETUP)
	@.venv/bin/lint-imports --no-logo

house: $(SETUP)
	@$(PY) tools/house.py

format: $(SETUP) ## format, and fix what ruff can
	@$(PY) -m ruff format .
	@$(PY) -m ruff check --fix .

docs: $(SETUP) ## build the documentation's site in .cache/site; it loads nothing from other hosts
	@NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --quiet --strict $(ARGS)
	@echo "==> .cache/site/index.html"

up: $(SETUP) ## start Airflow with its UI, and keep it running
	@$(PY) tools/up.py $(ARGS)

down: $(SETUP) ## stop what `make up` started
	@$(PY) tools/down.py $(ARGS)

dist: $(SETUP) ## build the wheel and the source archive in dist/
	@rm -rf dist
	@$(PY) -m hatchling build

lock: $(SETUP) ## resolve requirements.lock again (make lock ARGS=--upgrade: newest versions)
	@UV_SYSTEM_CERTS=1 .venv/bin/uv pip compile --quiet --universal --python-version 3.11 \
	  --all-extras --generate-hashes --no-emit-index-url --no-header --no-annotate \
	  $(ARGS) --output-file requirements.lock pyproject.toml

clean: ## remove everything that setup, tests and runs created
	@rm -rf .venv .cache dist lake landing reports .airflow .mypy_cache .pytest_cache .ruff_cache \
	  .hypothesis .import_linter_cache spark-warehouse metastore_db derby.log
	@find libs tests tools dags jobs -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
