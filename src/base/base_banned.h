/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions that have no safe use do not compile.
 */
#ifndef CAIRN_BASE_BANNED_H
#define CAIRN_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC poison strcpy strcat sprintf vsprintf strtok gets strncat atoi atol atof

#endif
