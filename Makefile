# Two commands do everything: `make run` and `make test`. Both make their own virtual environments first.
PYTHON ?= python3
PORT   ?= 7860
HOST   ?= 127.0.0.1
SERVE  ?= 1

RUN_VENV  := .venv/run
TEST_VENV := .venv/test
STATE     := .run
ENTRIES    = $(STATE)/entries
DIALOGUES  = $(STATE)/dialogues
OWN_STATE  = $(if $(filter-out .run,$(STATE)), STATE=$(STATE))
ENVIRONMENT = PYTHON="$(PYTHON)" ./environment.sh
# Three on two cores: while one waits for a server or a browser, the others compute. Files keep their order, in which
# those that take longest come first.
WORKERS     = -n 3 --dist loadfile --no-loadscope-reorder

export HF_HUB_DISABLE_TELEMETRY := 1
# Also where a container forbids it: hundreds of processes would compile the same modules again.
export PYTHONDONTWRITEBYTECODE :=
# What was asked for, for the commands that messages name.
export GOAL ?= $(MAKECMDGOALS)

# Whether the leaderboard can listen, before minutes go by; by the Python at hand, with nothing installed.
define PORT_CHECK
import socket
import sys

host, port = sys.argv[1:3]


def refused(number):
    """Why nothing can listen there, or None."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, number))
            listener.listen()
        except OSError as error:
            return error.strerror or str(error)


if not (port.isdigit() and int(port) < 65536):
    sys.exit("PORT=%s is no number from 0 to 65535. Fix: make run PORT=7861" % port)
reason = refused(int(port))
if reason:
    free = [number for number in range(7860, 7960) if not refused(number)]
    fix = "stop what listens there, or  make run PORT=%s" % free[0] if free else "make run HOST=127.0.0.1"
    sys.exit("The leaderboard cannot listen on %s:%s: %s.\nFix: %s" % (host, port, reason, fix))
endef
export PORT_CHECK

.PHONY: run python port prepare test quick test-slow whole test-all lint types docs site clean help

help:
	@echo "make run        set up, prepare the embedded benchmark, make and score its baselines, serve http://$(HOST):$(PORT)"
	@echo "make prepare BENCHMARKS=cirr/val   prepare benchmarks for the leaderboard of make run, running or not"
	@echo "make test       set up with everything, then lint, types and tests"
	@echo "make test-slow  the same with the tests that take long, and many more examples of properties"
	@echo "make test-all   the same with every case where these have some of a kind"
	@echo "make docs       write the generated parts of the docs anew"
	@echo "make site       the docs as a site: open site/index.html"
	@echo "make clean      remove the environments, the state of make run and the site"

# Without torch: what the suite needs to prepare, score and serve. All of it comes as wheels, so that nothing is built apart.
$(RUN_VENV)/.installed: setup.cfg pyproject.toml constraints.txt environment.sh
	@$(ENVIRONMENT) $(RUN_VENV) leaderboard --no-build-isolation
	@touch $@

# With everything that the tests, the linter and the type checker need.
$(TEST_VENV)/.packages: setup.cfg pyproject.toml constraints.txt environment.sh
	@$(ENVIRONMENT) $(TEST_VENV) leaderboard,retrieval,language,distributed,dev
	@touch $@

# What the tests import is compiled here, since pip does not; whether they can be collected, `make test` says. The linter
# and the type checker need not wait for it.
$(TEST_VENV)/.installed: $(TEST_VENV)/.packages
	@echo "Compiling what the tests import ..."
	@$(TEST_VENV)/bin/python -m pytest --collect-only -q >$(TEST_VENV)/collected.log 2>&1 || true
	@touch $@

# Looked at before anything is installed, and not where it is.
python:
	@[ -e $(RUN_VENV)/.installed ] || $(ENVIRONMENT)

port: python
	@[ "$(SERVE)" = "0" ] || $(or $(wildcard $(RUN_VENV)/bin/python),$(PYTHON)) -c "$$PORT_CHECK" "$(HOST)" "$(PORT)"

# State lies below .run: a second run reuses it and loses nothing. The baselines without weights are made here and
# compared with the rank files of submissions/entries; those of the shapes encoder, which need torch, are these files.
# Random, image only and text only stand on the boards as baselines, the others as methods, in rank groups. Two processes
# score them at once. Dialogues are played after the first table, once.
run prepare: export CIR_CACHE_HOME := $(abspath $(STATE))/cache
run prepare: export CIR_LEADERBOARD_HOME := $(abspath $(STATE))/leaderboard
run prepare: export HF_HOME := $(abspath $(STATE))/huggingface
run: export CIR_LEADERBOARD_PREPARE := make prepare$(OWN_STATE) BENCHMARKS={benchmark}
run: port $(RUN_VENV)/.installed
	@$(RUN_VENV)/bin/cir datasets prepare --no-hub-cache shapes/val shapes/multiturn_val
	@$(RUN_VENV)/bin/cir entries --out $(ENTRIES)
	@echo "Scoring them for the boards ..."
	@baselines=$$(ls $(foreach name,random. image_only- text_only-,$(ENTRIES)/$(name)*.json.gz)) && \
	methods=$$(ls $(ENTRIES)/*.json.gz | grep -v -x -F "$$baselines") && \
	{ $(RUN_VENV)/bin/cir leaderboard add --baseline $$baselines >/dev/null & } && \
	$(RUN_VENV)/bin/cir leaderboard add $$methods >/dev/null && wait $$!
	@echo; $(RUN_VENV)/bin/cir leaderboard show shapes/val shapes/multiturn_val; echo
	@if [ ! -f $(DIALOGUES)/.made ]; then \
	mkdir -p $(DIALOGUES) && for method in random image_only_pixels image_text_sum_pixels; do \
	echo "Playing dialogues for a third board (once; three methods): $$method ..."; \
	$(RUN_VENV)/bin/cir multiround --benchmark shapes/val --method $$method --simulator oracle --max-rounds 5 --k 10 \
	--json --out $(DIALOGUES)/$$method.jsonl >/dev/null || exit 1; done; \
	$(RUN_VENV)/bin/cir leaderboard add --baseline $(DIALOGUES)/random.jsonl $(DIALOGUES)/image_only_pixels.jsonl >/dev/null && \
	$(RUN_VENV)/bin/cir leaderboard add $(DIALOGUES)/image_text_sum_pixels.jsonl >/dev/null && touch $(DIALOGUES)/.made && echo; fi
	@echo "Real benchmarks for these boards, from any other shell, while the leaderboard runs or not:"
	@echo "  make -C $(CURDIR) prepare$(OWN_STATE) BENCHMARKS=\"cirr/val fashioniq/val\""
	@echo "Publishers' files are downloaded, or taken from CIR_DATA_HOME."
	@if [ "$(SERVE)" = "0" ]; then exit 0; fi; echo; exec $(RUN_VENV)/bin/cir leaderboard serve --host $(HOST) --port $(PORT)

# What the leaderboard of make run judges, a shell's own cache aside. BENCHMARKS may end with options: --data-dir FOLDER.
prepare: $(RUN_VENV)/.installed
	@$(RUN_VENV)/bin/cir datasets prepare --no-hub-cache $(BENCHMARKS)

lint: $(TEST_VENV)/.packages
	@$(TEST_VENV)/bin/ruff check .
	@$(TEST_VENV)/bin/ruff format --check .

types: $(TEST_VENV)/.packages
	@$(TEST_VENV)/bin/mypy

# All three at once: the type checker is done long before the tests are.
test:
	@$(MAKE) --no-print-directory --keep-going -j3 lint types quick

quick: $(TEST_VENV)/.installed
	@$(TEST_VENV)/bin/python -m pytest -m "not slow and not exhaustive" $(WORKERS)

# In one run: what all tests share is imported and built once.
test-slow:
	@$(MAKE) --no-print-directory --keep-going -j3 lint types whole

whole: $(TEST_VENV)/.installed
	@$(TEST_VENV)/bin/python -m pytest -m "not exhaustive" --hypothesis-profile deep $(WORKERS)

# Every hostile file, every training of the docs, every script of perf/, all of shapes, every seeded fault, and 200 examples
# of each property: after a change to these, and before a release.
test-all: test-slow
	@$(TEST_VENV)/bin/python -m pytest -m exhaustive --timeout 7200 $(WORKERS) tests
	@$(TEST_VENV)/bin/python -m pytest -m "not exhaustive" --hypothesis-profile thorough --timeout 7200 $(WORKERS) tests/property

docs: $(TEST_VENV)/.installed
	@$(TEST_VENV)/bin/python -m examples.query_figures
	@$(TEST_VENV)/bin/python docs/generate.py

# Without a warning or not at all; tests/conformance/test_site.py follows its links.
site: export NO_MKDOCS_2_WARNING := 1
site: $(TEST_VENV)/.installed
	@$(TEST_VENV)/bin/python -m mkdocs build --quiet --site-dir site
	@echo "site/index.html"

clean:
	rm -rf .venv $(STATE) site
