/* SPDX-License-Identifier: BSD-3-Clause
 *
 * base: what every module stands on. Row 0: knows nothing of the others.
 */
#ifndef CAIRN_BASE_H
#define CAIRN_BASE_H

#include "base/base_banned.h"
#include "base/base_err.h"
#include "base/base_mem.h"
#include "base/base_mpi.h"
#include "base/base_signal.h"
#include "base/base_vec.h"
#include "base/base_box.h"
#include "base/base_index.h"
#include "base/base_buf.h"
#include "base/base_str.h"
#include "base/base_struct.h"
#include "base/base_clock.h"
#include "base/base_rng.h"
#include "base/base_log.h"
#include "base/base_output.h"
#include "base/base_level.h"
#include "base/base_opt.h"
#include "base/base_config.h"
#include "base/base_type.h"
#include "base/base_job.h"
#include "base/base_load.h"
#include "base/base_json.h"
#include "base/base_thread.h"

/* The smaller and the larger of two values without side effects. */
#define CRN_MIN(a, b) ((a) < (b) ? (a) : (b))
#define CRN_MAX(a, b) ((a) > (b) ? (a) : (b))

/* v rounded up to a multiple of the power of two m. */
#define CRN_ROUND_UP(v, m) (((v) + ((m)-1)) & ~((m)-1))

#endif
