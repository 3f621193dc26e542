# One command each. `make demo` and `make test` need nothing before them: what is missing is installed into
# .venv and node_modules, once, and again when the list of what is needed changes.

.DELETE_ON_ERROR:
SHELL := /bin/sh
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
WORKERS ?= 2
export PYTHONPATH := $(CURDIR)/server
export PIP_DISABLE_PIP_VERSION_CHECK := 1

RUN := $(VENV)/.installed-run
DEV := $(VENV)/.installed-dev
DOCS := $(VENV)/.installed-docs
NODE := node_modules/.installed
NVIM := .venvs/nvim/bin/nvim
JUPYTER := .venvs/jupyter/.installed

.PHONY: help demo test test-python test-client check fix fuzz hostile fleet table table-check bench test-editor screenshots \
	docs docs-test new-rule generated clean

help:  ## list the commands
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile

demo: $(RUN)  ## open a training script with mistakes as an editor would, and print what the editor shows
	@$(PY) fixtures/demo/open_in_editor.py

test: test-python test-client  ## every test but those in VS Code

test-python: $(DEV) $(NVIM)
	GRADGUARD_NEOVIM=needed $(PY) -m pytest -q -n $(WORKERS) --dist loadfile tests

test-client: $(NODE) $(RUN)
	npm test --silent

check: $(DEV) $(NODE)  ## format, lint, types, layers, and that generated files are up to date
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy
	$(PY) -m pytest -q tests/test_layers.py tests/docs/test_words.py
	$(PY) -m docs.generate --check
	$(PY) client/scripts/settings.py --check
	npm run --silent check

fix: $(DEV)  ## format, and repair what the linter can
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

generated: $(DEV)  ## write the generated parts of the documentation and of package.json again
	$(PY) -m docs.generate
	$(PY) client/scripts/settings.py

fuzz: $(DEV)  ## random programs, run by torch, read, fixed and monitored (FUZZ, FIXES, MONITOR pass options); random editing
	$(PY) -m tests.fuzz.run --loops 200 --reads 200 --cuts 200 --needless 200 $(FUZZ)
	$(PY) -m tests.fixes $(FIXES)
	$(PY) -m tests.fixes --in-place $(FIXES)
	$(PY) -m tests.runtime $(MONITOR)
	GRADGUARD_FUZZ=2000 $(PY) -m pytest -q tests/fuzz/test_verifying.py
	GRADGUARD_FUZZ=300 $(PY) -m pytest -q tests/fixes/test_varied.py
	GRADGUARD_FUZZ=1000 $(PY) -m pytest -q tests/source -k prefix
	GRADGUARD_FUZZ=20 $(PY) -m pytest -q -s tests/lsp/test_edits.py tests/lsp/test_protocol.py tests/engine/test_reuse.py \
		tests/source/test_mending.py tests/ide/test_stale.py

# HOSTILE says how many times as much is tried as in `make test`; HOSTILE_SEED=7 tries others.
hostile: $(DEV)  ## hostile repositories, special files, programs that grow, kills at any moment; in temporary folders, with limits
	GRADGUARD_HOSTILE=$(or $(HOSTILE),7) GRADGUARD_HOSTILE_SEED=$(or $(HOSTILE_SEED),0) \
		$(PY) -m pytest -q -n $(WORKERS) tests/hostile

fleet: $(DEV)  ## 20,000 tiny packages on Ray while workers are killed; FLEET="--packages 300" passes options
	$(PY) -m tests.fleet.crowd $(FLEET)

table: $(DEV)  ## generate the table of operations from the installed torch
	$(PY) -m tools.optable.generate

# The samples of one seed, so that the same table gets the same answer; tests draw fresh ones each time.
TABLE_SEED ?= 1
table-check: $(DEV)  ## ask the installed torch whether the shipped table is right; TABLE=--rows-only does not generate it again
	$(PY) -m tools.optable.validate --seed $(TABLE_SEED) $(TABLE)

bench: $(DEV)  ## measure keystrokes, latency, throughput and the neighbours; BENCH="..." passes options
	$(PY) -m benchmarks $(BENCH)

test-editor: docs $(DEV) $(NODE) $(NVIM) $(JUPYTER)  ## the extension in a real VS Code, the server in Neovim and Jupyter, the web pages in a browser
	bash tests/vscode/setup.sh
	bash tests/vscode/run.sh
	GRADGUARD_NEOVIM=needed GRADGUARD_JUPYTER=needed $(PY) -m pytest -q tests/editors tests/docs/test_configurations.py
	node tests/docs/site.mjs site
	node tests/docs/playground.mjs site

screenshots: $(RUN) $(NODE)  ## take the pictures of the documentation again, in a real VS Code
	bash tests/vscode/setup.sh
	GRADGUARD_SHOTS=docs/images bash tests/vscode/run.sh script

docs: $(DOCS) $(NODE)  ## build the web pages into site/, with the checker that runs in them
	node client/scripts/web.mjs --production
	node client/scripts/playground.mjs
	$(PY) -m docs.build
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --quiet --strict --config-file build/docs/mkdocs.yml
	@echo "open site/index.html; with search: $(PY) -m http.server --directory site"

docs-test: docs $(DEV)  ## run every command, configuration and example of the documentation
	$(PY) -m pytest -q tests/docs

new-rule: $(RUN)  ## a new rule with its page: make new-rule name=some-pattern code=GG113
	$(PY) -m docs.new_rule "$(name)" "$(code)"

clean:  ## remove everything that make made
	rm -rf $(VENV) .venvs node_modules build dist site .cache

$(PY):
	@PYTHON="$(PYTHON)" sh .ci/venv $(VENV)

$(RUN): requirements.txt pyproject.toml | $(PY)
	$(PY) -m pip install -qq --requirement requirements.txt
	$(PY) -m pip install -qq --no-deps --editable .
	@touch $@

$(DEV): requirements-dev.txt requirements-fleet.txt requirements-mcp.txt $(RUN)
	$(PY) -m pip install -qq --requirement requirements-dev.txt
	@touch $@

$(DOCS): requirements-docs.txt $(RUN)
	$(PY) -m pip install -qq --requirement requirements-docs.txt
	@touch $@

$(NVIM): tests/editors/setup_nvim.sh | $(PY)
	sh tests/editors/setup_nvim.sh $(PY)
	@touch $@

$(JUPYTER): tests/editors/setup_jupyter.sh | $(PY)
	sh tests/editors/setup_jupyter.sh $(PY)
	@touch $@

$(NODE): package.json package-lock.json
	npm ci --no-audit --no-fund --loglevel=error
	@touch $@
