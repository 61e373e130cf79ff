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

all: $(BUILD)/build.ninja
	@$(call MAKEIT,$(BUILD))

# A new line in tools/packages may be something that the configuration looks for.
$(BUILD)/build.ninja: tools/packages | deps
	@cmake --preset gcc -B $(BUILD) -DCMAKE_INSTALL_PREFIX="$(PREFIX)" $(CMAKE_ARGS)
	@touch $@

$(BUILD)/%/build.ninja: tools/packages | deps
	@cmake --preset $* -B $(BUILD)/$* $(CMAKE_ARGS)
	@touch $@

deps:
	@tools/deps

demo: all
	@examples/demo $(BUILD)

# gcc with Open MPI runs everything; clang with MPICH runs what another compiler or MPI can break,
# and the fuzzers, which only clang can build.
check: all $(BUILD)/clang/build.ninja
	$(call TEST,$(BUILD))
	@$(call MAKEIT,$(BUILD)/clang)
	$(call TEST,$(BUILD)/clang) -L 'unit|mpi|system|fuzz'

asan tsan: %: $(BUILD)/%/build.ninja
	@$(call MAKEIT,$(BUILD)/$@)
	$(call TEST,$(BUILD)/$@)

soak: all
	@tools/soak $(BUILD) openmpi $(SOAK)

fuzz: $(BUILD)/clang/build.ninja
	@$(call MAKEIT,$(BUILD)/clang)
	@tools/fuzz --seconds $(FUZZ) $(BUILD)/clang/tests/fuzz

bench: all
	@tools/bench $(BUILD)/bench $(BENCH)

lint: all
	@tools/lint $(BUILD)

install: all
	@DESTDIR="$(DESTDIR)" cmake --install $(BUILD) --prefix "$(PREFIX)"

clean:
	rm -rf $(BUILD)

.PHONY: all deps demo check asan tsan soak fuzz bench lint install clean
