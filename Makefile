# Everything else is `isolitmus …` inside .venv. PYTHON and JAVA_HOME may name a Python and a Java.

BIN := .venv/bin
INSTALLED := .venv/installed

# Where it is set, each process compiles the tests anew: a third of `make quick`.
unexport PYTHONDONTWRITEBYTECODE

# make test PART=jobs: the linters and types of all, the tests of one part, of one layer, or of these.
PARTS_core := tests/test_core.py tests/model tests/specs/language tests/checker/judge
PARTS_proper := $(addprefix tests/,model specs checker conformance cli formats)
TESTED := $(if $(PART),$(or $(PARTS_$(PART)),tests/$(PART)))
$(if $(wildcard $(or $(firstword $(TESTED)),tests)),,$(error PART is '$(PART)'; known: core, proper, and the folders of tests))

.NOTPARALLEL:
.PHONY: help engines demo test conformance quick bench artifact artifact-full proofs docs lint env preflight clean

help:
	@echo 'make demo         find, explain and replay the anomalies of WriteSerializable: report/report.html'
	@echo 'make test         linters, types, layers, all tests; real engines are asked about a fifth of the catalogue'
	@echo 'make quick        the same without engines and without what is slow'
	@echo '                  both take PART=jobs, or another folder of tests; PART=core, PART=proper'
	@echo 'make conformance  hours: the whole catalogue, all that is found, random tests, the matrix, on real engines'
	@echo 'make docs         the site of docs/, in build/site; a broken link is an error'
	@echo 'make bench        how long searches, audits and real Delta take, tables in Markdown'
	@echo 'make artifact     ten minutes, no Spark: repeat what is claimed, a table in build/artifact.md'
	@echo 'make artifact-full  hours: the same with Spark and the other engines'
	@echo 'make proofs       check the proofs of theorems in proofs/ with Coq, where it is installed'
	@echo 'make engines      releases of delta-rs, in environments of their own; PostgreSQL, where apt has it'
	@echo 'make env          .venv with the pinned packages'
	@echo 'make clean        remove what the others made, except .venv'

demo: preflight env
	$(BIN)/isolitmus demo --out report

test: preflight lint $(if $(PART),,docs) engines
	$(BIN)/pytest --numprocesses auto --dist loadfile -m 'not wide' $(TESTED)

# Without the first three, their tests are skipped and say so; without the last, Spark starts more slowly.
engines: env
	-@$(BIN)/isolitmus install deltalake-1.6.6
	-@$(BIN)/isolitmus install deltalake-1.6.3
	-@$(BIN)/isolitmus install postgres
	-@$(BIN)/isolitmus install delta

conformance: preflight engines
	$(BIN)/pytest --numprocesses auto --dist loadfile --seed fresh --whole --record-runs \
		-m 'spark or deltalake or derby or postgres or wide'
	$(BIN)/isolitmus explore tables --count 1000 --evidence conformance/evidence/random.toml
	$(BIN)/isolitmus explore raw --count 5000 --evidence conformance/evidence/random.toml
	$(BIN)/isolitmus explore sessions --engine derby --count 500 --evidence conformance/evidence/derby.toml
	$(BIN)/isolitmus explore sessions --engine postgres --count 500 --evidence conformance/evidence/postgres.toml
	$(BIN)/isolitmus matrix --engine delta --evidence conformance/evidence/pairs.toml

quick: $(if $(PART),env,lint)
	HYPOTHESIS_PROFILE=quick $(BIN)/pytest --numprocesses auto --dist loadfile \
		-m 'not spark and not slow and not derby and not postgres' $(TESTED)

bench: env
	$(BIN)/python bench/run.py
	$(BIN)/python bench/sweeps.py
	$(BIN)/python bench/audits.py
	$(BIN)/python bench/engine.py
	$(BIN)/python bench/races.py
	$(BIN)/python bench/locks.py
	$(BIN)/python bench/walks.py
	$(BIN)/python bench/jobs.py
	$(BIN)/python bench/invariants.py
	$(BIN)/python bench/constructs.py
	$(BIN)/python bench/lint.py
	$(BIN)/python bench/recorded.py
	$(BIN)/python bench/bulk.py

artifact: env
	$(BIN)/python bench/artifact.py

artifact-full: preflight engines
	$(BIN)/python bench/artifact.py --full

proofs:
	@.ci/proofs

docs: env
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

lint: env
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

preflight:
	@.ci/preflight python java >/dev/null

env: $(INSTALLED)

# The stamp holds the folder that it was made in, and a sum of what was asked for: a checkout that
# moved, or whose Python is gone, or that wants something else, is installed anew. Without build
# isolation the build backend is one of the pinned packages, too.
#
# .venv/types/isolitmus is the checkout, under the name that it is imported by, for tools that read rather than
# import: setuptools' own answer, editable_mode=strict, links file by file, and misses a new one.
WANTED := $(CURDIR) $(shell { sed '/^\[tool/,$$d' pyproject.toml; cat constraints.txt Makefile; } | cksum)
ifneq ($(shell $(BIN)/python -c 'print(open("$(INSTALLED)").read())' 2>/dev/null),$(WANTED))
.PHONY: $(INSTALLED)
endif
$(INSTALLED):
	@python=$$(.ci/preflight python) && \
	{ test "$$python" = $(BIN)/python || "$$python" -m venv --clear .venv; }
	@echo 'installing the pinned packages into .venv (the first time several hundred megabytes) …'
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt pip setuptools
	@PYTHONWARNINGS='ignore:Editable installation' \
		$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-build-isolation \
		--editable '.[connect,postgres,spark,test]' --group dev --group docs
	@mkdir -p .venv/types
	@ln -sfn '$(CURDIR)' .venv/types/isolitmus
	@printf %s '$(WANTED)' >$@

clean:
	rm -rf report build dist *.egg-info spark-warehouse metastore_db derby.log
	rm -rf .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name .venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
