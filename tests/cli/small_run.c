/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Makes a run for scripts that compare: small_run TRAIL NAME KICK MARKS KEEP [EVERY]. From
 * mark 3 on, values 700 to 709 of 'field' are larger by KICK than they would be. With EVERY, marks
 * are taken at multiples of it alone. CAIRN_VARIABLE_BLOCK, CAIRN_COMPARE_LEAF and
 * CAIRN_VARIABLE_BOUND are 1KiB, 1KiB and "1e-3, 1e-9" unless they are set.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <cairn/cairn.h>

enum { N = 2000 };

static void set(const char *name, const char *value, bool overwrite)
{
    if (setenv(name, value, overwrite) != 0)
        exit(2);
}

static int take_marks(cairn *c, double kick, uint64_t nmarks, uint64_t every)
{
    static double field[N];
    uint64_t step = 0;
    int rc = cairn_protect(c, "field", field, CAIRN_FLOAT64, N);
    if (rc == CAIRN_OK)
        rc = cairn_protect(c, "step", &step, CAIRN_UINT64, 1);
    while (rc == CAIRN_OK && step < nmarks) {
        step++;
        for (int i = 0; i < N; i++)
            field[i] = 0.25 * i + (double)step + (step >= 3 && i / 10 == 70 ? kick : 0);
        if (step % every == 0)
            rc = cairn_mark(c, step, CAIRN_AUTO);
    }
    return rc;
}

int main(int argc, char **argv)
{
    cairn *c;
    if (argc < 6) {
        fprintf(stderr, "usage: small_run TRAIL NAME KICK MARKS KEEP [EVERY]\n");
        return 2;
    }
    set("CAIRN_RUN_TRAIL", argv[1], true);
    set("CAIRN_RUN_NAME", argv[2], true);
    set("CAIRN_LEVEL_LOCAL", "trail", true);
    set("CAIRN_KEEP_GLOBAL", argv[5], true);
    set("CAIRN_VARIABLE_BLOCK", "1KiB", false);
    set("CAIRN_COMPARE_LEAF", "1KiB", false);
    set("CAIRN_VARIABLE_BOUND", "1e-3, 1e-9", false);
    int rc = cairn_open(MPI_COMM_SELF, NULL, &c);
    if (rc == CAIRN_OK)
        rc = take_marks(c, strtod(argv[3], NULL), strtoull(argv[4], NULL, 10),
                        argc > 6 ? strtoull(argv[6], NULL, 10) : 1);
    if (rc == CAIRN_OK)
        rc = cairn_close(c);
    if (rc < 0)
        fprintf(stderr, "small_run: %s\n", cairn_last_error(NULL));
    return rc < 0;
}
