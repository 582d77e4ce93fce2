# `make help` lists what there is.

SWIFT ?= swift
PYTHON ?= /usr/bin/python3
PREFIX ?= /usr/local
# Where the demo is served, and further flags for its sfud and its signalling server.
HOST ?= 127.0.0.1
PORT ?= 8080
SFUD_FLAGS ?=
DEMO_FLAGS ?=
# The peers that `make bench` measures too (AGAINST=janus), whether it takes its time (FULL=1),
# and what else sfu-bench is told.
AGAINST ?=
FULL ?=
BENCH_FLAGS ?=
# The lines that `make bench-lines` tries (all of them), how often, for how many seconds each, and
# what else benchmarks/lines/run is told. Terminals put their own LINES into the environment, so it
# counts only on the command line.
ifneq ($(origin LINES),command line)
LINES :=
endif
RUNS ?= 3
SECONDS_EACH ?= 30
LINES_FLAGS ?=
# What benchmarks/nodes/run is told.
NODES_FLAGS ?=
# The earlier version that `make acceptance-versions` takes, a tag or a commit (the last tag).
PREVIOUS ?=
# How long `make fuzz` stays with each target, in seconds, and with which ones (all).
TIME ?= 60
TARGETS ?=
# How many histories `make simulate` lives through, how long each is (LENGTH=short), which one alone
# (SEED=7), which bug is planted (PLANT=all), and what else sfu-simulate is told.
SEEDS ?= 1000
SEED ?=
LENGTH ?=
PLANT ?=
SIMULATE_FLAGS ?=

# The Debian revision of the packages that `make deb` makes, and the FFmpeg that they bring along,
# which Scripts/ffmpeg makes (none: they use Debian's).
REVISION ?= 1
FFMPEG ?=
export FFMPEG

BUILD := .build
# Products that the gate and the acceptance tests use, in release mode. The simulator and the fuzzer
# are not among them.
RELEASE := sfud sfuctl sfu-bench loopback-only core-cost
SOURCES := Package.swift Sources Tests benchmarks
ENVIRONMENT := .venv/.installed-for
DOCS_ENVIRONMENT := $(BUILD)/docs/environment/.installed-for

.DEFAULT_GOAL := help
# SwiftPM works on one build at a time.
.NOTPARALLEL:
.PHONY: help run run-cluster build bindings benchmarks bench bench-lines bench-nodes test unit unit-full unit-beside-builds \
	acceptance acceptance-slow acceptance-versions previous deb test-deb test-images gate gate-update lint test-asan \
	test-tsan fuzz prove simulate docs install packages bench-packages deb-packages \
	image-packages test-packages clean

help: ## Shows this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

run: packages build ## Starts sfud and the demo, and prints its address; Ctrl-C stops both
	@PYTHON="$(PYTHON)" HOST="$(HOST)" PORT="$(PORT)" DEMO_FLAGS="$(DEMO_FLAGS)" \
		Scripts/run $(SFUD_FLAGS)

run-cluster: packages build ## Starts three sfud as a cluster, and a page that draws it; Ctrl-C stops all
	@PORT="$(PORT)" "$(PYTHON)" examples/cluster/run -- $(SFUD_FLAGS)

build: packages ## Builds sfud and sfuctl in release mode
	$(SWIFT) build -c release --product sfud
	$(SWIFT) build -c release --product sfuctl

bindings: test-packages ## Writes docs/openrpc.json and bindings/ anew, from the contract's types
	$(SWIFT) build --build-tests
	SFUD_UPDATE=1 $(BUILD)/debug/sfudPackageTests.xctest --testing-library swift-testing \
		--filter ContractDocumentTests
	Scripts/bindings

benchmarks: bench-packages ## Builds the load client and the core's cost in release mode
	$(SWIFT) build -c release --product sfu-bench
	$(SWIFT) build -c release --product loopback-only
	$(SWIFT) build -c release --product core-cost

bench: build benchmarks ## Measures sfud, writes benchmarks/report.md, prints the bars; FULL=1, AGAINST=janus
	$(BUILD)/release/sfu-bench --report benchmarks $(if $(FULL),--full) \
		$(addprefix --against ,$(AGAINST)) $(BENCH_FLAGS)

bench-lines: test-packages $(ENVIRONMENT) build ## Compares poor lines with a direct call; LINES="600k loss-5", RUNS=1
	benchmarks/lines/run --runs $(RUNS) --seconds $(SECONDS_EACH) $(LINES_FLAGS) -- $(LINES)

bench-nodes: test-packages $(ENVIRONMENT) build benchmarks ## Measures a room over three nodes beside one; NODES_FLAGS="hop mutes"
	benchmarks/nodes/run $(NODES_FLAGS)

test: test-packages lint unit-beside-builds gate acceptance ## Runs the linter and all tests

unit-beside-builds: packages bench-packages
	$(SWIFT) build --build-tests
	@# Optimizing a whole module takes one core, so the release products that `gate` and
	@# `acceptance` need are built meanwhile; their output is printed afterwards.
	@log=$$(mktemp); { for product in $(RELEASE); do \
		$(SWIFT) build -c release --product $$product || exit; \
	done; make $(ENVIRONMENT); } >"$$log" 2>&1 & builds=$$!; \
	failed=; Scripts/unit || failed=yes; \
	wait $$builds || failed=yes; \
	cat "$$log"; rm -f "$$log"; [ -z "$$failed" ]

unit: test-packages ## Runs the Swift tests in a debug build
	$(SWIFT) build --build-tests
	@Scripts/unit

unit-full: test-packages ## Runs them with all their seeds and whole lengths
	$(SWIFT) build --build-tests
	@SFUD_SEEDS=full SFUD_SCENARIOS=full Scripts/unit

acceptance: test-packages $(ENVIRONMENT) build benchmarks ## Runs real browsers and other clients against sfud
	@# Most tests wait for media, so two run at a time; those that measure time run alone.
	@failed=; \
	Tests/acceptance/run -m "not alone and not slow" -n 2 --dist worksteal || failed=yes; \
	Tests/acceptance/run -m "alone and not slow" || failed=yes; \
	[ -z "$$failed" ]

acceptance-slow: test-packages $(ENVIRONMENT) build benchmarks ## Runs those that take more than ten seconds each
	Tests/acceptance/run -m slow

acceptance-versions: packages previous test-packages $(ENVIRONMENT) build ## Has nodes of an earlier version and this one share rooms; PREVIOUS=v0.2.0
	SFUD_PREVIOUS_BINARY=$(BUILD)/previous/.build/release/sfud \
		Tests/acceptance/run -s test_versions.py

previous: packages
	@SWIFT="$(SWIFT)" Scripts/build-previous $(PREVIOUS)

gate: test-packages ## Holds a packet's instructions in the core against the threshold
	$(SWIFT) build -c release --product core-cost
	Scripts/gate

gate-update: test-packages ## Writes that threshold anew; the commit says why it changed
	$(SWIFT) build -c release --product core-cost
	Scripts/gate --update

lint: ## Checks the Swift sources' format
	$(SWIFT) format lint --strict --recursive --parallel $(SOURCES)

test-asan: test-packages ## Runs the Swift tests, with all the noise, under the address sanitizer
	$(SWIFT) test --sanitize address --disable-xctest --scratch-path .build-asan
	SFUD_NOISE=full $(SWIFT) test -c release -Xswiftc -enable-testing --sanitize address \
		--disable-xctest --scratch-path .build-asan --filter NoiseTests

test-tsan: test-packages ## Runs the Swift tests under the thread sanitizer
	$(SWIFT) test --sanitize thread --disable-xctest --scratch-path .build-tsan

fuzz: test-packages ## Fuzzes what clients, callers and files say; TIME=60, TARGETS=sdp
	@Scripts/fuzz --time $(TIME) $(TARGETS)

prove: test-packages ## Runs the random walk of 1,000,000 calls, and 1,000 fence trials a term
	$(SWIFT) build -c release -Xswiftc -enable-testing --build-tests --scratch-path .build-prove
	SFUD_WALK=500000 SFUD_TRIALS=1000 .build-prove/release/sfudPackageTests.xctest \
		--testing-library swift-testing --filter "RandomWalkTests|FenceTrialTests"

simulate: test-packages ## Lives through whole rooms in virtual time; SEEDS=1000, SEED=7, PLANT=all
	$(SWIFT) build -c release --product sfu-simulate \
		--scratch-path .build-simulate -Xswiftc -enable-testing -Xswiftc -DSFUD_INDEX_GUARD
	.build-simulate/release/sfu-simulate $(if $(SEED),--seed $(SEED),--seeds $(SEEDS)) \
		$(addprefix --length ,$(LENGTH)) $(addprefix --plant ,$(PLANT)) $(SIMULATE_FLAGS)

docs: $(DOCS_ENVIRONMENT) ## Writes the documents as pages, .build/docs/site, and checks their links
	$(BUILD)/docs/environment/bin/python Scripts/docs site $(BUILD)/docs
	Scripts/check-links
	Scripts/check-links --site $(BUILD)/docs/site

install: ## Installs sfud and sfuctl as built by `make build`, a systemd unit, alerts and documents under PREFIX
	@test -x $(BUILD)/release/sfud -a -x $(BUILD)/release/sfuctl || \
		{ echo "Run make build first, as the user who has the toolchain"; exit 1; }
	install -d "$(DESTDIR)$(PREFIX)/bin" "$(DESTDIR)$(PREFIX)/lib/systemd/system" \
		"$(DESTDIR)$(PREFIX)/share/doc/sfud"
	install -m 755 $(BUILD)/release/sfud $(BUILD)/release/sfuctl "$(DESTDIR)$(PREFIX)/bin"
	sed 's|/usr/local/|$(PREFIX)/|' packaging/sfud.service \
		>"$(DESTDIR)$(PREFIX)/lib/systemd/system/sfud.service"
	install -d "$(DESTDIR)$(PREFIX)/share/sfud/prometheus" "$(DESTDIR)$(PREFIX)/share/sfud/grafana"
	install -m 644 deploy/prometheus/*.yml "$(DESTDIR)$(PREFIX)/share/sfud/prometheus"
	install -m 644 deploy/grafana/sfud.json "$(DESTDIR)$(PREFIX)/share/sfud/grafana"
	umask 022 && Scripts/docs collect "$(DESTDIR)$(PREFIX)/share/doc/sfud"

deb: deb-packages ## Builds the Debian packages sfud and sfud-gateway in .build/deb; REVISION=2, FFMPEG=
	$(SWIFT) build -c release --static-swift-stdlib --scratch-path .build-deb --product sfud
	$(SWIFT) build -c release --static-swift-stdlib --scratch-path .build-deb --product sfuctl
	Scripts/deb $(REVISION)

test-deb: deb $(ENVIRONMENT) ## Tests these packages in a bare Debian: a call, an upgrade, a purge; as root
	Tests/deb/run

test-images: deb image-packages $(ENVIRONMENT) ## Builds container images of these packages, and carries a call through them; as root
	Tests/deb/images

packages: ## Installs the Debian packages that sfud needs, if any is missing
	@Scripts/install-packages

bench-packages: ## Installs the Debian packages that the benchmarks need, if any is missing
	@Scripts/install-packages --bench $(AGAINST)

deb-packages: ## Installs the Debian packages that `make deb` and its tests need, if any is missing
	@Scripts/install-packages --deb

image-packages: ## Installs those that the test of the container images needs, if any is missing
	@Scripts/install-packages --images

test-packages: ## Installs the Debian packages that the tests need, if any is missing
	@Scripts/install-packages --tests

clean: ## Removes what was built
	rm -rf .build .build-asan .build-deb .build-ffmpeg .build-fuzz .build-simulate .build-tsan .venv

# GStreamer's Python bindings come from Debian, the rest from PyPI.
$(ENVIRONMENT): Tests/acceptance/requirements.txt Tests/acceptance/bundles.txt | test-packages
	$(PYTHON) -m venv --system-site-packages .venv
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
		--requirement Tests/acceptance/bundles.txt
	cp $< $@

$(DOCS_ENVIRONMENT): docs/requirements.txt
	$(PYTHON) -m venv $(BUILD)/docs/environment
	$(BUILD)/docs/environment/bin/python -m pip install --quiet --disable-pip-version-check \
		--requirement $<
	cp $< $@
