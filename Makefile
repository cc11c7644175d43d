# Two commands do everything: `make run` and `make test`. Both make their own virtual environments first.
PYTHON ?= python3
PORT   ?= 7860
HOST   ?= 127.0.0.1
SERVE  ?= 1

RUN_VENV  := .venv/run
TEST_VENV := .venv/test
STATE     := .run
DIALOGUES  = $(STATE)/dialogues
OWN_STATE  = $(if $(filter-out .run,$(STATE)), STATE=$(STATE))
PIP_FLAGS := -qq --disable-pip-version-check

export HF_HUB_DISABLE_TELEMETRY := 1
export GRADIO_ANALYTICS_ENABLED := False

.PHONY: run prepare test quick test-slow lint types docs site clean help

help:
	@echo "make run        set up, prepare the embedded benchmark, make and score its baselines, serve http://$(HOST):$(PORT)"
	@echo "make prepare BENCHMARKS=cirr/val   prepare benchmarks for the leaderboard of make run, running or not"
	@echo "make test       set up with everything, then lint, types and tests"
	@echo "make test-slow  the tests that take long"
	@echo "make docs       write the generated parts of the docs anew"
	@echo "make site       the docs as a site: open site/index.html"
	@echo "make clean      remove the environments, the state of make run and the site"

# Without torch: what the suite needs to prepare, score and serve.
$(RUN_VENV)/.installed: setup.cfg pyproject.toml constraints.txt
	@echo "Setting up $(RUN_VENV) (once; about a minute)..."
	@$(PYTHON) -m venv $(RUN_VENV)
	@$(RUN_VENV)/bin/python -m pip install $(PIP_FLAGS) -c constraints.txt -e ".[leaderboard]"
	@touch $@

# With everything that the tests, the linter and the type checker need.
$(TEST_VENV)/.installed: setup.cfg pyproject.toml constraints.txt
	@echo "Setting up $(TEST_VENV) (once; a few minutes)..."
	@$(PYTHON) -m venv $(TEST_VENV)
	@$(TEST_VENV)/bin/python -m pip install $(PIP_FLAGS) --no-compile -c constraints.txt -e ".[leaderboard,retrieval,language,distributed,dev]"
	@touch $@

# State lies below .run: a second run reuses it and loses nothing. The baselines without weights are made here and
# compared with the rank files of submissions/entries; those of the shapes encoder, which need torch, are these files.
# Random, image only and text only stand on the boards as baselines, the others as methods, in rank groups.
run prepare: export CIR_CACHE_HOME := $(abspath $(STATE))/cache
run prepare: export CIR_LEADERBOARD_HOME := $(abspath $(STATE))/leaderboard
run prepare: export HF_HOME := $(abspath $(STATE))/huggingface
run: export CIR_LEADERBOARD_PREPARE := make prepare$(OWN_STATE) BENCHMARKS={benchmark}
run: $(RUN_VENV)/.installed
	@$(RUN_VENV)/bin/cir datasets prepare --no-hub-cache shapes/val shapes/multiturn_val
	@$(RUN_VENV)/bin/cir entries --out $(STATE)/entries
	@$(RUN_VENV)/bin/cir leaderboard add --baseline $(foreach name,random. image_only- text_only-,$(STATE)/entries/$(name)*.json.gz) >/dev/null
	@$(RUN_VENV)/bin/cir leaderboard add $(STATE)/entries/*.json.gz >/dev/null
	@if [ ! -f $(DIALOGUES)/.made ]; then \
	echo "Playing the dialogues of shapes by three methods that need no weights ..."; \
	mkdir -p $(DIALOGUES) && for method in random image_only_pixels image_text_sum_pixels; do \
	$(RUN_VENV)/bin/cir multiround --benchmark shapes/val --method $$method --simulator oracle --max-rounds 5 --k 10 \
	--history average --out $(DIALOGUES)/$$method.jsonl >/dev/null || exit 1; done; \
	$(RUN_VENV)/bin/cir leaderboard add --baseline $(DIALOGUES)/random.jsonl $(DIALOGUES)/image_only_pixels.jsonl >/dev/null && \
	$(RUN_VENV)/bin/cir leaderboard add $(DIALOGUES)/image_text_sum_pixels.jsonl >/dev/null && touch $(DIALOGUES)/.made; fi
	@echo; $(RUN_VENV)/bin/cir leaderboard show shapes/val shapes/multiturn_val; echo
	@echo "Real benchmarks for these boards, from any other shell, while the leaderboard runs or not:"
	@echo "  make -C $(CURDIR) prepare$(OWN_STATE) BENCHMARKS=\"cirr/val fashioniq/val\""
	@echo "Publishers' files are downloaded, or taken from CIR_DATA_HOME."
	@if [ "$(SERVE)" = "0" ]; then exit 0; fi; echo; exec $(RUN_VENV)/bin/cir leaderboard serve --host $(HOST) --port $(PORT)

# What the leaderboard of make run judges, a shell's own cache aside. BENCHMARKS may end with options: --data-dir FOLDER.
prepare: $(RUN_VENV)/.installed
	@$(RUN_VENV)/bin/cir datasets prepare --no-hub-cache $(BENCHMARKS)

lint: $(TEST_VENV)/.installed
	@$(TEST_VENV)/bin/ruff check .
	@$(TEST_VENV)/bin/ruff format --check .

types: $(TEST_VENV)/.installed
	@$(TEST_VENV)/bin/mypy

# All three at once: the type checker is done long before the tests are.
test:
	@$(MAKE) --no-print-directory --keep-going -j3 lint types quick

quick: $(TEST_VENV)/.installed
	@$(TEST_VENV)/bin/python -m pytest -m "not slow" -n 2 --dist worksteal

test-slow: $(TEST_VENV)/.installed
	@$(TEST_VENV)/bin/python -m pytest -m "slow or hypothesis" --hypothesis-profile deep -n 2 --dist worksteal tests

docs: $(TEST_VENV)/.installed
	@$(TEST_VENV)/bin/python docs/figures.py
	@$(TEST_VENV)/bin/python docs/generate.py

# Without a warning or not at all; tests/conformance/test_site.py follows its links.
site: export NO_MKDOCS_2_WARNING := 1
site: $(TEST_VENV)/.installed
	@$(TEST_VENV)/bin/python -m mkdocs build --quiet --site-dir site
	@echo "site/index.html"

clean:
	rm -rf .venv $(STATE) site
