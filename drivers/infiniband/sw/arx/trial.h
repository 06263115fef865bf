/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Whether trains arrive. A card that splits a train (uso.c) may number the
 * packets in another way than their ICRCs say, or not be able to split it, and
 * no card tells. Peers then drop all packets, or all but the first. So a stage
 * watches one train at a time. This file knows no QPs.
 */
#ifndef ARX_TRIAL_H
#define ARX_TRIAL_H

#include <linux/types.h>

/* A stage makes no more trains after this many were lost in a row. */
#define ARX_TRIAL_LOST		8

/* What is known about the train that is watched. */
enum arx_trial_state {
	ARX_TRIAL_NONE,		/* no train is watched */
	ARX_TRIAL_SENT,		/* the train has left */
	ARX_TRIAL_EARLIER,	/* the peer missed an earlier packet */
	ARX_TRIAL_AGAIN,	/* its packets are sent again, by themselves */
	ARX_TRIAL_VOID,		/* nothing can be said about the train */
};

/**
 * struct arx_trial - the trains of a stage, from one reset of its QP to the
 *	next
 * @from: PSN of the first packet that left together with the train that is
 *	watched
 * @psn: PSN of the second packet of that train. The first packet has the number
 *	that was written for it, whatever the card does
 * @state: what is known about that train
 * @lost: trains that were watched and lost, in a row
 * @arrived: a train has arrived, so trains may leave while one is watched
 */
struct arx_trial {
	u32 from;
	u32 psn;
	enum arx_trial_state state;
	u8 lost;
	bool arrived;
};

/**
 * arx_trial_may - true if a train may leave
 * @trial: of the stage
 *
 * Context: the stage's lock held.
 * Return: false while the first train is watched, and for good after
 * ARX_TRIAL_LOST losses in a row.
 */
static inline bool arx_trial_may(const struct arx_trial *trial)
{
	return trial->lost < ARX_TRIAL_LOST &&
	       (trial->arrived || trial->state == ARX_TRIAL_NONE);
}

/**
 * arx_trial_void - the fate of the train that is watched says nothing
 * @trial: of a stage whose packets this machine dropped, or whose peer refused
 *	them
 *
 * No other train is watched before the peer has the packets of this one.
 *
 * Context: the stage's lock held.
 */
static inline void arx_trial_void(struct arx_trial *trial)
{
	if (trial->state == ARX_TRIAL_SENT || trial->state == ARX_TRIAL_EARLIER)
		trial->state = ARX_TRIAL_VOID;
}

void arx_trial_begin(struct arx_trial *trial, u32 from, u32 psn);
void arx_trial_again(struct arx_trial *trial, u32 psn);
bool arx_trial_ends(struct arx_trial *trial, u32 psn);

#endif /* ARX_TRIAL_H */
