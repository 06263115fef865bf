/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The completer: from acknowledgments and read data to completions. */
#ifndef ARX_COMPLETER_H
#define ARX_COMPLETER_H

#include "qp.h"

/* What a requester sends again. */
enum arx_fill {
	ARX_FILL_NONE,		/* nothing */
	ARX_FILL_NEXT,		/* packets that the peer misses */
	ARX_FILL_PART,		/* responses that are missing */
	ARX_FILL_REST,		/* the rest of those */
	ARX_FILL_BACK,		/* everything: go-back-N */
};

bool arx_completer_rx(struct arx_qp *qp, struct arx_run *run);
void arx_completer_continue(struct arx_qp *qp);
void arx_completer_retire(struct arx_qp *qp);
bool arx_completer_set_failed(struct arx_qp *qp, enum ib_wc_status status);
bool arx_completer_knows(const struct arx_comp *comp, u32 psn);
u32 arx_completer_there(struct arx_qp *qp, u32 psn);
void arx_completer_arm(struct arx_qp *qp);
bool arx_completer_expired(struct arx_qp *qp);
bool arx_completer_probe(struct arx_qp *qp);
enum arx_fill arx_completer_next_fill(struct arx_qp *qp, u32 *psn, u32 *n);
void arx_completer_rnr_ended(struct arx_qp *qp);
bool arx_completer_end_rnr_wait(struct arx_qp *qp);
void arx_completer_stop(struct arx_qp *qp);

#endif /* ARX_COMPLETER_H */
