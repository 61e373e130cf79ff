/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CAIRN_BASE_SIGNAL_H
#define CAIRN_BASE_SIGNAL_H

/* A signal's name without "SIG", or NULL; as sigabbrev_np, which glibc has since 2.32. */
const char *crn_signal_name(int number);

#endif
