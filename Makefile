.DEFAULT_GOAL := help
STRICT := --explicit-target-dependency-import-check error
# Without a limit all tests begin at once, and each waits for the others' turns: that takes twice as long, and deadlines pass.
AT_ONCE := --experimental-maximum-parallelization-width 8
# The longest first: they wait, so they run at once.
LOGINS := each_right_taken_away expiring_token wrong_logins wrong_certificates sasl_over_tls tls mutual_tls sasl_without_tls listener_enforces_security

.PHONY: help deps deps-test deps-torture deps-deb build release wheel test-python deb test-deb demo test test-tsan scenarios test-compose torture test-dashboard test-terminal test-observability test-postgres docs documents lint format simulate fuzz bench clean

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' Makefile

deps: ## Install what the build needs (apt-get)
	@scripts/install-dependencies.sh

deps-test:
	@scripts/install-dependencies.sh --test

deps-torture:
	@scripts/install-dependencies.sh --test --torture

deps-deb:
	@scripts/install-dependencies.sh --deb

build: deps ## Build everything, debug
	swift build $(STRICT)

release: deps ## Build the martlet command, release
	swift build -c release --product martlet --static-swift-stdlib

wheel: release deps-test ## Build the Python package with the command inside, in .build/wheel
	scripts/wheel.sh .build/release/martlet .build/wheel

deb: release deps-deb ## Build a Debian package in .build/deb
	scripts/deb/build.sh .build/release/martlet .build/deb

test-deb: release deps-deb ## Install, upgrade and remove the package in a clean root (as root, or with sudo)
	$(if $(filter-out 0,$(shell id -u)),sudo) scripts/deb/test.sh .build/release/martlet

demo: deps ## Run a scripted demo: three devices and an embedded broker (KEEP=1 leaves it running)
	swift build $(STRICT) --product martlet
	.build/debug/martlet demo $(if $(KEEP),--keep)

test: deps-test ## Run all tests, with a real broker if one is available
	swift build --build-tests $(STRICT)
	python3 Tests/scenarios/documents --binary .build/debug/martlet
	python3 Tests/scenarios/python_package --binary .build/debug/martlet
	scripts/test-broker.sh run -- scripts/venv-python.sh Tests/scenarios/postgres --binary .build/debug/martlet --kills 6
	python3 Tests/scenarios/docker_files image_manifest
	scripts/venv-python.sh Tests/scenarios/docker_files compose_files grafana_model
	scripts/test-broker.sh run -- python3 Tests/scenarios/multi_node --driver process --binary .build/debug/martlet --jobs 4 $(LOGINS)
	scripts/test-broker.sh run -- swift test $(STRICT) $(AT_ONCE)

test-tsan: deps-test ## Run the multithreaded tests of models under the thread sanitizer (a separate build)
	swift build --build-tests --sanitize=thread --scratch-path .build-tsan
	TSAN_OPTIONS=suppressions=$(CURDIR)/scripts/thread-sanitizer.txt \
		swift test --skip-build --sanitize=thread --scratch-path .build-tsan \
		--filter 'MartletDataTests.*(Actor|TwoContext|Observ|ManyProcesses|Notification)'

documents: build deps-test ## Run every command of README and docs (DOCUMENT=docs/merging.md for one)
	python3 Tests/scenarios/documents --binary .build/debug/martlet $(DOCUMENT)

test-python: build deps-test ## Test the Python package, from the source and as a wheel (PART=source for one)
	python3 Tests/scenarios/python_package --binary .build/debug/martlet $(PART)

scenarios: release deps-test ## Run the scenario suite on processes (SCENARIO=name for one; JOBS=4 for four at once; BROKER=tansu; LIBRDKAFKA=pypi)
	$(if $(BROKER),,scripts/test-broker.sh run --) python3 Tests/scenarios/multi_node --driver process $(if $(JOBS),--jobs $(JOBS)) \
		$(if $(BROKER),--broker $(BROKER)) $(if $(LIBRDKAFKA),--librdkafka $(LIBRDKAFKA)) $(SCENARIO)

test-compose: ## Build the image, and test the compose files and the scenarios in containers (Docker; SCENARIO=name for one)
	scripts/test-compose.sh $(SCENARIO)

torture: release deps-torture ## Inject random faults into real processes (MINUTES=10 NODES=5 SEED=n)
	python3 Tests/scenarios/torture --minutes $(or $(MINUTES),10) --nodes $(or $(NODES),5) $(if $(SEED),--seed $(SEED))

test-dashboard: release deps-test ## Test the dashboard in headless Chromium (STATE=name for one; PICTURES=folder keeps screenshots)
	python3 Tests/scenarios/dashboard $(if $(PICTURES),--pictures $(PICTURES)) $(STATE)

test-terminal: release deps-test ## Test the terminal output in tmux (VIEW=name for one; PICTURES=folder keeps screenshots)
	python3 Tests/scenarios/terminal $(if $(PICTURES),--pictures $(PICTURES)) $(VIEW)

test-observability: release deps-torture ## Test alerts and dashboard queries in a real Prometheus, with real agents (STAGE=name for one)
	scripts/venv-python.sh Tests/scenarios/docker_files grafana_model
	scripts/venv-python.sh Tests/scenarios/observability $(STAGE)

test-postgres: release deps-test ## Test export and ingest with a real PostgreSQL (PART=both_ways for one; KILLS=50 SEED=n)
	scripts/test-broker.sh run -- scripts/venv-python.sh Tests/scenarios/postgres --binary .build/release/martlet \
		--kills $(or $(KILLS),50) $(if $(SEED),--seed $(SEED)) $(PART)

docs: deps ## Build the libraries' documentation in .build/docs; a broken link is an error
	scripts/docc.sh

lint: deps-test ## Check the format and the project's own rules
	swift format lint --strict --recursive Sources Tests Benchmarks/Sources Examples Package.swift
	scripts/lint.sh

format: ## Format all Swift sources in place
	swift format --in-place --recursive Sources Tests Benchmarks/Sources Examples Package.swift

simulate: deps ## Run the simulator on a thousand seeds (SEEDS=first-last)
	swift build -c release --product martlet-simulate --static-swift-stdlib
	.build/release/martlet-simulate --seeds $(or $(SEEDS),1-1000)

fuzz: deps ## Fuzz the decoders (SECONDS=60 for each; FUZZ=target for one)
	swift build --package-path Tests/Fuzz --scratch-path .build-fuzz --sanitize=fuzzer
	scripts/fuzz.sh $(or $(SECONDS),60) $(FUZZ)

bench: deps-test ## Run the benchmarks (a quarter of an hour; BENCH=--quick for less)
	swift build -c release --package-path Benchmarks --product Benchmarks --static-swift-stdlib
	swift build -c release --package-path Benchmarks --product martlet --static-swift-stdlib
	Benchmarks/.build/release/Benchmarks --martlet Benchmarks/.build/release/martlet $(BENCH)

clean: ## Remove build products
	swift package clean
