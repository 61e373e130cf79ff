/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The configuration reader on any bytes: it takes them or refuses them with a sentence that names
 * the file; whatever it took, it takes again.
 */
#include "base/base.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    crn_config *cfg = NULL;
    cairn_status rc = crn_config_parse("input.ini", (const char *)data, nbytes, &cfg);
    if (rc < 0) {
        assert(rc == CAIRN_EINVAL && !cfg);
        assert(strstr(crn_err_peek()->text, "input.ini"));
        return 0;
    }
    for (int id = 0; id < CRN_OPT_COUNT_OF; id++) {
        const crn_opt *row = crn_opt_row((crn_opt_id)id);
        crn_opt_value value;
        rc = crn_opt_parse(row, crn_config_text(cfg, (crn_opt_id)id), &value);
        assert(rc == CAIRN_OK);
    }
    crn_config_free(cfg);
    return 0;
}
