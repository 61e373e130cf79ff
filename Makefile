# SPDX-License-Identifier: BSD-3-Clause
# The front door: every target installs what is missing, configures and builds as needed.
# CMake does the work and CMakePresets.json has the variants; this file only names the things a
# person does. Each variant lives in a folder of its own below $(BUILD).

BUILD  ?= build
PREFIX ?= /usr/local
JOBS   ?= $(shell nproc)
# make soak: seconds to kill jobs for. make fuzz: seconds for each fuzzer. make bench: only programs
# whose name contains this.
SOAK   ?= 600
FUZZ   ?= 600
BENCH  ?=

MAKEIT = cmake --build $(1) -j $(JOBS)
TEST   = ctest --test-dir $(1) --output-on-failure --no-tests=error -j $(JOBS) $(CTEST_ARGS)

all: $(BUILD)/.configured
	@$(call MAKEIT,$(BUILD))

# What a target needs is installed before it is configured, and no more: tools/packages has the
# purposes. Once the tests were asked for they stay.
deps:
	@tools/deps build demo
deps-test:
	@tools/deps build demo test
deps-bench:
	@tools/deps bench

# A new line in tools/packages may be something that the configuration looks for.
$(BUILD)/.configured: tools/packages | deps
	@cmake --preset gcc -B $(BUILD) -DCMAKE_INSTALL_PREFIX="$(PREFIX)" \
	    -DBUILD_TESTING=$(if $(wildcard $(BUILD)/.tested),ON,OFF) $(CMAKE_ARGS)
	@touch $@

$(BUILD)/.tested: tools/packages | deps-test
	@cmake --preset gcc -B $(BUILD) -DCMAKE_INSTALL_PREFIX="$(PREFIX)" -DBUILD_TESTING=ON \
	    $(CMAKE_ARGS)
	@touch $(BUILD)/.configured $@

tests: $(BUILD)/.tested
	@$(call MAKEIT,$(BUILD))

$(BUILD)/%/build.ninja: tools/packages | deps-test
	@cmake --preset $* -B $(BUILD)/$* $(CMAKE_ARGS)
	@touch $@

demo: deps
	@tools/quietly 'building Cairn' $(BUILD)/demo.log $(MAKE) all
	@examples/demo $(BUILD)

# gcc with Open MPI runs everything; clang with MPICH runs what another compiler or MPI can break,
# and the fuzzers, which only clang can build.
check: tests $(BUILD)/clang/build.ninja
	$(call TEST,$(BUILD))
	@$(call MAKEIT,$(BUILD)/clang)
	$(call TEST,$(BUILD)/clang) -L 'unit|mpi|system|fuzz'

# The compression study of seed 003, whole: about half an hour on two cores.
study: $(BUILD)/.configured
	@$(call MAKEIT,$(BUILD))
	@tools/study $(BUILD)

asan tsan: %: $(BUILD)/%/build.ninja
	@$(call MAKEIT,$(BUILD)/$@)
	$(call TEST,$(BUILD)/$@)

soak: tests
	@tools/soak $(BUILD) openmpi $(SOAK)

fuzz: $(BUILD)/clang/build.ninja
	@$(call MAKEIT,$(BUILD)/clang)
	@tools/fuzz --seconds $(FUZZ) $(BUILD)/clang/tests/fuzz

bench: tests deps-bench
	@tools/bench $(BUILD)/bench $(BENCH)

lint: tests
	@tools/lint $(BUILD)

install: all
	@DESTDIR="$(DESTDIR)" cmake --install $(BUILD) --prefix "$(PREFIX)"

clean:
	rm -rf $(BUILD)

.PHONY: all deps deps-test deps-bench tests demo check study asan tsan soak fuzz bench lint \
    install clean
