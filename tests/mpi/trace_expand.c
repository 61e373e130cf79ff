/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Expand a trace into the plain logs that it stands for: trace_expand TRACE DIRECTORY. Without the
 * trace, what its ranks kept aside is taken.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tracefmt/tracefmt.h"

static cairn_status expand(const crn_trace *t, size_t lane, uint32_t rank, FILE *out)
{
    crn_walk *w;
    crn_traced_event e;
    crn_buf b = {0};
    crn_trace_texts names = crn_names_of_trace(t);
    CRN_TRY(crn_walk_open(t, lane, rank, 1, &w));
    while (crn_walk_next(w, &e)) {
        b.n = 0;
        crn_text_event(&b, &names, &e);
        crn_put_u8(&b, '\n');
        fwrite(b.at, 1, b.n, out);
    }
    crn_walk_close(w);
    crn_buf_done(&b);
    return CAIRN_OK;
}

static cairn_status expand_all(const crn_trace *t, const char *dir)
{
    for (size_t lane = 0; lane < t->nlanes; lane++) {
        crn_seq_iter it;
        int64_t rank;
        crn_seq_iter_init(&it, &t->lane[lane].ranks);
        while (crn_seq_next(&it, &rank)) {
            char path[4096];
            snprintf(path, sizeof path, "%s/%lld.%zu.log", dir, (long long)rank, lane);
            FILE *out = fopen(path, "w");
            CRN_FAIL_IF(!out, CAIRN_EIO, "cannot create '%s'", path);
            CRN_TRY(expand(t, lane, (uint32_t)rank, out));
            fclose(out);
        }
    }
    return CAIRN_OK;
}

int main(int argc, char **argv)
{
    crn_trace *t = NULL;
    if (argc != 3) {
        fprintf(stderr, "usage: trace_expand TRACE DIRECTORY\n");
        return 2;
    }
    cairn_status rc = crn_trace_load(argv[1], &t);
    if (rc == CAIRN_ENOTFOUND)
        rc = crn_trace_salvage(argv[1], &t);
    if (rc == CAIRN_OK)
        rc = expand_all(t, argv[2]);
    if (rc < 0)
        fprintf(stderr, "trace_expand: %s\n", crn_err_peek()->text);
    if (rc == CAIRN_OK && !crn_trace_complete(t))
        printf("incomplete\n");
    crn_trace_free(t);
    return rc < 0;
}
