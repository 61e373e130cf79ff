/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ckpt: what modules above the public line may use of it besides <cairn/ckpt.h>. Row 4.
 */
#ifndef CAIRN_CKPT_CKPT_H
#define CAIRN_CKPT_CKPT_H

#include <cairn/ckpt.h>

#include "base/base.h"
#include "ckpt/ckpt_box.h"

#endif
