# SPDX-License-Identifier: BSD-3-Clause
"""tools/gen-calls.cmake: a row of calls.table gives a call its properties and its replay."""
import unittest

import api

GEN = api.SOURCE / "tools" / "gen-calls.cmake"


class Calls(api.TestCase):
    def run_on(self, kind, rows):
        return api.run("cmake", f"-DKIND={kind}", f"-DTABLE={self.write('calls.table', rows)}",
                       f"-DOUT={self.dir / 'made'}", "-P", GEN)

    def make(self, kind, rows):
        code, output = self.run_on(kind, rows)
        self.assertEqual(code, 0, output)
        return (self.dir / "made").read_text()

    def test_properties_follow_from_parameters(self):
        row = self.make("table", "MPI_Irecv p2p start buf count type src tag comm newreq\n")
        self.assertIn("CRN_LAYER_P2P, CRN_TRAIT_RECEIVES, 0,", row)
        row = self.make("table", "MPI_Probe p2p probe src tag comm status\n")
        self.assertIn("CRN_TRAIT_BLOCKS | CRN_TRAIT_PROBES,", row)
        row = self.make("table", "MPI_Gatherv coll coll sbuf count type rbuf rootcounts displs "
                                 "type root comm\n")
        self.assertIn("CRN_LAYER_COLL, CRN_TRAIT_LISTS_1,", row)

    def test_a_row_alone_makes_the_dispatch(self):
        c = self.make("replay", "MPI_Win_flush rma synchronise wrank win\n")
        self.assertIn("return MPI_Win_flush(a->root, a->win);", c)
        self.assertIn("[CRN_CALL_MPI_Win_flush] = {crn_play_synchronise, issue_MPI_Win_flush}", c)

    def test_another_call_in_its_place(self):
        c = self.make("replay", "MPI_File_read_all mpiio transfer+reads file buf count type "
                                "status\n"
                                "MPI_File_read_all_begin mpiio transfer+reads:MPI_File_read_all "
                                "file buf count type\n")
        self.assertIn("[CRN_CALL_MPI_File_read_all_begin] = "
                      "{crn_play_transfer, issue_MPI_File_read_all}", c)

    def test_a_call_without_a_function_is_no_neighbour(self):
        c = self.make("replay", "MPI_File_read mpiio transfer+reads file buf count type status\n"
                                "MPI_File_get_view mpiio - file\n")
        self.assertNotIn("get_view", c)

    def test_large_and_persistent_calls_follow_from_others(self):
        rows = ("MPI_Bcast coll coll buf count type root comm\n%needs LARGE\n"
                "MPI_Bcast_c =large MPI_Bcast\nMPI_Bcast_init_c =init+large MPI_Bcast\n")
        c = self.make("c", rows)
        self.assertIn("#if CRN_HAS_LARGE\nCRN_EXPORT int MPI_Bcast_c(void *a0, MPI_Count a1,", c)
        self.assertIn("int MPI_Bcast_init_c(void *a0, MPI_Count a1, MPI_Datatype a2, int a3, "
                      "MPI_Comm a4, MPI_Info a5, MPI_Request *a6)", c)
        self.assertNotIn("MPI_Bcast_c", self.make("fortran", rows))
        self.assertIn("[CRN_CALL_MPI_Bcast_c] = {crn_play_coll, issue_MPI_Bcast}",
                      self.make("replay", rows))
        self.assertIn("CRN_TRAIT_PREPARES | CRN_TRAIT_UNMODELLED", self.make("table", rows))
        for row in ("MPI_Bcast_c =large MPI_Beast\n", "MPI_Bcast_c =huge MPI_Bcast\n"):
            code, output = self.run_on("table", rows + row)
            self.assertNotEqual(code, 0, row)
            self.assertIn("calls.table:5:", output)

    def test_unknown_words_are_refused(self):
        for row in ("MPI_Send p2p send+fast cbuf\n", "MPI_Send p2p send kbuf\n",
                    "MPI_Send p2p send\n"):
            code, output = self.run_on("table", row)
            self.assertNotEqual(code, 0, row)
            self.assertIn("calls.table:1:", output)


if __name__ == "__main__":
    unittest.main()
