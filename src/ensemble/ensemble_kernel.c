/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The kind of processor kernel for which the bits of a study's analyses are promised: its linear
 * algebra chooses one by the processor. The study has its name, and says so when a server goes on
 * with another one.
 */
#include "ensemble/ensemble_server.h"

void crn_kernel_of(const crn_study *s, char name[CRN_KERNEL_NAME])
{
    char *text;
    name[0] = 0;
    if (crn_study_read(s->dir, "kernel", &text) < 0) {
        crn_err_take(&(crn_err){0}); /* no analysis was made yet */
        return;
    }
    text[strcspn(text, "\n")] = 0;
    snprintf(name, CRN_KERNEL_NAME, "%s", text);
    free(text);
}

cairn_status crn_kernel_record(crn_server *s)
{
    const char *kernel;
    char was[CRN_KERNEL_NAME], line[CRN_KERNEL_NAME + 1];
    const crn_study *t = s->study;
    if (t->particle.on ? !(t->particle.jitter > 0) : crn_filter_is_free(t->filter))
        return CAIRN_OK;
    CRN_TRY(crn_filter_kernel(&kernel));
    crn_kernel_of(t, was);
    if (strcmp(was, kernel) == 0)
        return CAIRN_OK;
    crn_study_event(t, "kernel", "{s:s,s:s}", "kernel", kernel, "was", was);
    snprintf(line, sizeof line, "%.60s\n", kernel);
    return crn_study_write(t, "kernel", line);
}
