/* SPDX-License-Identifier: BSD-3-Clause
 *
 * study.ranges: "FIELD LOW HIGH, ...". A result out of them is as bad as one that is not finite.
 */
#include "ensemble/ensemble_server.h"

static cairn_status apply(const crn_study *study, const char *text, crn_state_layout *l)
{
    char name[64], low[64], high[64], end;
    double a, b;
    if (text[strspn(text, " \t")] == 0)
        return CAIRN_OK;
    CRN_FAIL_IF(sscanf(text, " %63s %63s %63s %c", name, low, high, &end) != 3 ||
                    crn_parse_real(low, &a) < 0 || crn_parse_real(high, &b) < 0 || a > b,
                CAIRN_EINVAL, "'%s': study.ranges has '%s', not 'FIELD LOW HIGH'", study->file,
                text);
    for (size_t i = 0; i < l->field.n; i++)
        if (strcmp(l->field.at[i].name, name) == 0) {
            l->field.at[i].low = a;
            l->field.at[i].high = b;
            return CAIRN_OK;
        }
    return crn_fail(CAIRN_EINVAL, "'%s': study.ranges names '%s', which the model does not declare",
                    study->file, name);
}

cairn_status crn_ranges_apply(const crn_study *study, crn_state_layout *l)
{
    char *text, *rest = NULL;
    CRN_TRY(crn_strdup(study->ranges, &text));
    cairn_status rc = CAIRN_OK;
    for (char *one = strtok_r(text, ",", &rest); rc == CAIRN_OK && one;
         one = strtok_r(NULL, ",", &rest))
        rc = apply(study, one, l);
    free(text);
    return rc;
}
