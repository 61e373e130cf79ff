/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Cairn: trail markers along long computations. This header is all of it; a program that only marks
 * and resumes needs <cairn/ckpt.h> alone, and a tool that looks into trails <cairn/trail.h>.
 */
#ifndef CAIRN_CAIRN_H
#define CAIRN_CAIRN_H

#include <cairn/version.h>
#include <cairn/error.h>
#include <cairn/type.h>
#include <cairn/ckpt.h>
#include <cairn/keep.h>
#include <cairn/compare.h>
#include <cairn/trail.h>
#include <cairn/exchange.h>

#endif
