# SPDX-License-Identifier: BSD-3-Clause
# The front door: every target installs what is missing, configures and builds as needed.
# CMake does the work; this file only names the things a person does.

BUILD  ?= build
PREFIX ?= /usr/local
JOBS   ?= $(shell nproc)
# Time for each fuzzer, in seconds.
FUZZ   ?= 600

CTEST = ctest --test-dir $(1) --output-on-failure --no-tests=error -j $(JOBS) $(CTEST_ARGS)

all: $(BUILD)/build.ninja
	@cmake --build $(BUILD) -j $(JOBS)

$(BUILD)/build.ninja: CMakeLists.txt
	@tools/deps
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_INSTALL_PREFIX=$(PREFIX) $(CMAKE_ARGS)

deps:
	@tools/deps

demo: deps all
	@examples/demo $(BUILD)

# gcc with Open MPI runs everything; clang with MPICH runs what another compiler or MPI can break.
check: deps all
	$(call CTEST,$(BUILD))
	@$(MAKE) --no-print-directory all BUILD=$(BUILD)/mpich \
	    CMAKE_ARGS="-DCAIRN_MPI=mpich -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++"
	$(call CTEST,$(BUILD)/mpich) -L 'unit|mpi'

asan tsan: deps
	@$(MAKE) --no-print-directory all BUILD=$(BUILD)/$@ \
	    CMAKE_ARGS="-DCMAKE_BUILD_TYPE=Debug -DCAIRN_SANITIZE=$@ -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++"
	$(call CTEST,$(BUILD)/$@) -LE unsanitized

bench: deps all
	@cmake --build $(BUILD) --target bench

fuzz: deps all
	@tools/fuzz $(BUILD) $(FUZZ)

soak: deps all
	@tools/soak $(BUILD) $(SOAK)

lint: deps all
	@tools/lint $(BUILD)

install: all
	@DESTDIR=$(DESTDIR) cmake --install $(BUILD) --prefix $(PREFIX)

clean:
	rm -rf $(BUILD)

.PHONY: all deps demo check asan tsan bench fuzz soak lint install clean
