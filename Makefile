# A thin front: every target is one command that you could type yourself.
BUILD := build/release
JOBS := $(shell nproc)
RANKS := 2
PREFIX := /usr/local

.PHONY: build cuda run test test-long test-charts test-k8s test-slurm fuzz lint format docs package portable install clean distclean help
build:  ## build the release program: build/release/bin/lockstep
	@scripts/install-dependencies.sh --build
	@[ -f $(BUILD)/build.ninja ] && ! [ build/cuda-toolkit/stamp -nt $(BUILD)/build.ninja ] || cmake --preset release
	cmake --build $(BUILD) -j $(JOBS) --target lockstep

cuda:  ## fetch NVIDIA's toolkit into build/cuda-toolkit, then build with the module for GPUs
	scripts/cuda-toolkit.sh
	@$(MAKE) build

run: build  ## train the embedded digits on 2 CPU ranks (RANKS=n)
	@rm -rf build/run
	$(BUILD)/bin/lockstep train --ranks $(RANKS) run_directory=build/run

test:  ## build and run all tests
	@scripts/install-dependencies.sh --test
	scripts/test.sh

test-long:  ## the tests that take long: Debian 13, accuracy of the examples, PyTorch step by step, sanitizers
	@scripts/install-dependencies.sh --long
	scripts/test.sh --long

test-charts:  ## the tests of the chart with the real Helm, which is built first; needs Go
	@scripts/install-dependencies.sh --test
	scripts/test.sh --charts

test-k8s:  ## the tests of the chart, with the real Helm and a real Kubernetes, which are built first
	@scripts/install-dependencies.sh --k8s
	scripts/test.sh --k8s

test-slurm:  ## the tests of the scripts for Slurm, on a real Slurm with emulated hosts; needs root
	@scripts/install-dependencies.sh --slurm
	scripts/test.sh --slurm

SECONDS_EACH := 60
fuzz:  ## fuzz every parser, SECONDS_EACH=60 each, from the corpora of tests/fuzz on
	@scripts/install-dependencies.sh --fuzz
	scripts/fuzz.py --seconds $(SECONDS_EACH) --jobs $(JOBS)

lint:  ## check format, clang-tidy, includes, scripts
	@scripts/install-dependencies.sh --lint
	scripts/lint.sh

format:  ## format all sources
	@scripts/install-dependencies.sh --lint
	scripts/format.sh

docs:  ## the documentation as a searchable site: build/site
	@scripts/install-dependencies.sh --docs
	scripts/docs_site.py

package: build  ## a relocatable tarball in build/release
	cd $(BUILD) && cpack -G TGZ

portable: build  ## a tarball with all libraries and Open MPI, for machines where nothing can be installed
	@scripts/install-dependencies.sh --portable
	scripts/portable.py

install: build  ## install below PREFIX=/usr/local
	cmake --install $(BUILD) --prefix $(PREFIX)

clean:  ## remove what was built
	rm -rf build/release build/debug build/asan build/tsan build/fuzz build/lint

distclean:  ## remove everything that is not in git's care, caches too
	rm -rf --one-file-system build

help:  ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## */\1\t/p' Makefile | expand -t 12
