/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes a trail for the scripts: small_trail TRAIL RANKS MARKS KEEP adds a run to it;
 * small_trail TRAIL RANKS MARK adds MARK and the next to run-1, which keeps one from now on.
 */
#include "harness/small_trail.h"

static uint64_t number(const char *text)
{
    uint64_t n = 0;
    if (crn_parse_count(text, &n) < 0) {
        fprintf(stderr, "small_trail: %s\n", crn_err_peek()->text);
        exit(2);
    }
    return n;
}

int main(int argc, char **argv)
{
    if (argc != 4 && argc != 5) {
        fprintf(stderr, "usage: small_trail TRAIL RANKS MARKS KEEP\n");
        return 2;
    }
    const uint32_t nranks = (uint32_t)number(argv[2]);
    if ((argc == 5 ? small_trail(argv[1], NULL, nranks, number(argv[3]), number(argv[4]))
                   : small_trail_more(argv[1], "run-1", nranks, number(argv[3]))) < 0) {
        fprintf(stderr, "small_trail: %s\n", crn_err_peek()->text);
        return 1;
    }
    return 0;
}
