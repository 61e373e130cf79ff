# SPDX-License-Identifier: BSD-3-Clause
"""tools/check-layers finds nothing here, and finds each thing that it is there to find."""
import unittest

import api

check = api.tool("check-layers").check
GOOD = {
    "src/base/CMakeLists.txt": "crn_module(base NEEDS INIH)\n",
    "src/base/base.h": '#include "base/base_err.h"\n#include <cairn/error.h>\n',
    "src/base/base_err.h": "",
    "src/io/CMakeLists.txt": "crn_module(io USES base NEEDS LIBURING)\n",
    "src/io/io.h": '#include "base/base.h"\n',
    "src/io/io_fault.h": "struct crn_fault {\n};\ntypedef struct crn_fault crn_fault;\n",
    "src/store/CMakeLists.txt": "crn_module(store USES base io)\n",
    "src/store/store_part.c": '#include "io/io.h"\n/* MPI_Comm is not used here */\n',
    "src/comm/CMakeLists.txt": "crn_module(comm USES base LIBS MPI::MPI_C)\n",
    "src/comm/comm_mpi.c": "#include <mpi.h>\nMPI_Comm world;\n",
    "src/cmd/cmd_ls.c": '#include "base/base.h"\n#include <cairn/error.h>\n',
    "include/cairn/error.h": "#include <cairn/version.h>\n",
    "tests/unit/test_io.c": '#include "io/io.h"\n#include "io/io_fault.h"\n',
    "bench/bench_io.c": '#include "io/io.h"\n',
    "examples/heat.c": "#include <cairn/error.h>\n",
}
BAD = [
    ("src/base/base_up.c", '#include "io/io.h"\n', "'base' must not use 'io'"),
    ("src/comm/comm_io.c", '#include "io/io.h"\n', "'comm' must not use 'io'"),
    ("src/store/store_in.c", '#include "base/base_err.h"\n', "use 'base/base.h'"),
    ("src/store/store_fault.c", '#include "io/io_fault.h"\n', "use 'io/io.h'"),
    ("src/store/store_comm.c", '#include "comm/comm.h"\n', "USES of 'store' does not name 'comm'"),
    ("src/store/store_local.c", '#include "store.h"\n', "'store.h' is not <module>/<file>"),
    ("src/store/store_mpi.c", "int f(MPI_Comm c);\n", "'MPI_Comm': only comm"),
    ("src/store/store_mpi.h", "#include <mpi.h>\n", "'<mpi.h>': only comm"),
    ("src/store/part.c", "", "the name must be store_<thing>.c"),
    ("src/trace/trace_mark.c", '#include "store/store.h"\n', "'trace' must not use 'store'"),
    ("src/cmd/cmd_io.c", '#include "io/io.h"\n', "'cmd' must not use 'io'"),
    ("src/misc/misc.c", "", "not in the table of layers"),
    ("src/hash/CMakeLists.txt", "crn_module(hash USES base io)\n", "'hash' must not use 'io'"),
    ("include/cairn/leak.h", '#include "base/base.h"\n', "a public header must not include"),
    ("examples/peek.c", '#include "base/base.h"\n', "an example must not include"),
    ("bench/bench_fault.c", '#include "io/io_fault.h"\n', "use 'io/io.h'"),
    ("src/store/store_again.h", "typedef struct crn_fault {\n} crn_fault;\n",
     "'crn_fault' is defined in 'src/io/io_fault.h', too"),
    ("src/store/store_alias.h", "typedef int crn_fault;\n", "'crn_fault' is defined in"),
    ("tests/zeal/test_io.c", "", "'tests/unit/test_io.c' has the same name"),
]


class Layers(api.TestCase):
    def setUp(self):
        super().setUp()
        for name, text in GOOD.items():
            self.write(name, text)

    def test_this_tree(self):
        self.must(api.SOURCE / "tools" / "check-layers")

    def test_a_good_tree(self):
        self.assertEqual(check(self.dir), [])

    def test_each_offence(self):
        for name, text, words in BAD:
            with self.subTest(name=name):
                path = self.write(name, text)
                complaints = check(self.dir)
                self.assertEqual(len(complaints), 1, complaints)
                self.assertIn(words, complaints[0])
                path.unlink()
                if not any(path.parent.iterdir()):
                    path.parent.rmdir()


if __name__ == "__main__":
    unittest.main()
