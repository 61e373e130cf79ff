/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes a trail for the scripts: small_trail TRAIL RANKS MARKS KEEP adds a run to it.
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
    if (argc != 5) {
        fprintf(stderr, "usage: small_trail TRAIL RANKS MARKS KEEP\n");
        return 2;
    }
    if (small_trail(argv[1], NULL, (uint32_t)number(argv[2]), number(argv[3]), number(argv[4])) <
        0) {
        fprintf(stderr, "small_trail: %s\n", crn_err_peek()->text);
        return 1;
    }
    return 0;
}
