/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The last lines of output, in a fixed place: new lines push out the oldest.
 */
#include "supervise/supervise.h"

enum { LINES = 20 };

void crn_tail_add(crn_tail *t, const char *data, size_t n)
{
    const size_t cap = sizeof t->at - 1;
    if (n > cap) {
        data += n - cap;
        n = cap;
    }
    if (t->n + n > cap) {
        const size_t keep = CRN_MIN(t->n, cap - n);
        memmove(t->at, t->at + t->n - keep, keep);
        t->n = keep;
    }
    memcpy(t->at + t->n, data, n);
    t->n += n;
}

const char *crn_tail_text(crn_tail *t)
{
    const bool cut = t->n == sizeof t->at - 1;
    int lines = 0;
    while (t->n > 0 && t->at[t->n - 1] == '\n')
        t->n--;
    for (char *zero; (zero = memchr(t->at, 0, t->n)) != NULL;)
        *zero = '?';
    t->at[t->n] = 0;
    for (size_t i = t->n; i-- > 0;)
        if (t->at[i] == '\n' && ++lines == LINES)
            return t->at + i + 1;
    const char *first = cut ? strchr(t->at, '\n') : NULL;
    return first ? first + 1 : t->at;
}
