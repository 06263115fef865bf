// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The code of the tracepoints. */

#include "cq.h"
#include "key.h"
#include "qp.h"

#define CREATE_TRACE_POINTS
#include "trace.h"
