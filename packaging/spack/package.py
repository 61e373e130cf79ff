# SPDX-License-Identifier: BSD-3-Clause
"""Spack recipe. In a repository of your own: spack repo create here && cp package.py
here/packages/cairn/. tests/api/test_packaging.py holds its variants against the build's options.
The sources come from the repository that CAIRN_GIT names, or from the one in which spack is
started.
"""
import os

from spack.package import *


class Cairn(CMakePackage):
    """Checkpoint and restart, comparison and tracing of MPI programs."""

    git = os.environ.get("CAIRN_GIT", ".")

    license("BSD-3-Clause")

    version("main", branch="main")

    # one for each -DCAIRN_WITH_..., by the same name
    variant("jansson", default=True, description="event log, JSON, reports")
    variant("inih", default=True, description="configuration files")
    variant("random123", default=True, description="studies, simulated plans")
    variant("lz4", default=True, description="codec lz4")
    variant("zstd", default=True, description="codec zstd, traces")
    variant("zfp", default=False, description="codec zfp")
    variant("fpzip", default=False, description="codec fpzip")
    variant("isal", default=True, description="level encoded")
    variant("liburing", default=True, description="input and output by io_uring")
    variant("libunwind", default=True, description="call stacks in traces")
    variant("libdw", default=True, description="source lines of call sites in traces")
    variant("hdf5", default=True, description="HDF5 files")
    variant("zmq", default=True, description="ensembles")
    variant("lapacke", default=True, description="filters of ensembles")
    variant("python", default=True, description="manual pages of the calls, completion")

    depends_on("c", type="build")
    depends_on("cmake@3.18:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi")
    depends_on("xxhash")
    depends_on("jansson", when="+jansson")
    depends_on("libinih", when="+inih")
    depends_on("random123", type="build", when="+random123")
    depends_on("lz4", when="+lz4")
    depends_on("zstd", when="+zstd")
    depends_on("zfp", when="+zfp")
    depends_on("fpzip", when="+fpzip")
    depends_on("isa-l", when="+isal")
    depends_on("liburing", when="+liburing")
    depends_on("libunwind", when="+libunwind")
    depends_on("elfutils", when="+libdw")
    depends_on("hdf5@1.10:~mpi", when="+hdf5")
    depends_on("libzmq+libsodium", when="+zmq")
    depends_on("openblas", when="+lapacke")
    depends_on("python@3.7:", type="build", when="+python")
    depends_on("cmocka", type="test")

    def cmake_args(self):
        parts = ("jansson", "inih", "random123", "lz4", "zstd", "zfp", "fpzip", "isal",
                 "liburing", "libunwind", "libdw", "hdf5", "zmq", "lapacke", "python")
        args = [self.define(f"CAIRN_WITH_{p.upper()}", "ON" if f"+{p}" in self.spec else "OFF")
                for p in parts]
        return args + [self.define("BUILD_TESTING", self.run_tests)]
