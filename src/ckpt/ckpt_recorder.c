/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The recorder of libcairn-trace, where it was preloaded or linked, learns where marks lie among
 * what it records: 'cairn explain' cuts traces there. It is looked up by name each time, which
 * costs little beside a mark, so that the two libraries need not know each other.
 */
#include "ckpt/ckpt_session.h"

#include <dlfcn.h>

void crn_ckpt_tell_recorder(uint64_t version)
{
    void (*mark)(uint64_t);
    *(void **)&mark = dlsym(RTLD_DEFAULT, "cairn_trace_mark"); /* the way POSIX asks for */
    if (mark)
        mark(version);
}
