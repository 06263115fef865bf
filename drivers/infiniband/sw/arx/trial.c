// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Whether the packets that a card makes of trains arrive. */

#include "trial.h"
#include "wire.h"

/**
 * arx_trial_begin - a train leaves; watch it unless another one is watched
 * @trial: of the stage
 * @from: PSN of the first packet that leaves together with the train
 * @psn: PSN of the train's first packet
 *
 * Context: the stage's lock held.
 */
void arx_trial_begin(struct arx_trial *trial, u32 from, u32 psn)
{
	if (trial->state != ARX_TRIAL_NONE)
		return;
	trial->from = from;
	trial->psn = arx_psn_add(psn, 1);
	trial->state = ARX_TRIAL_SENT;
}

/**
 * arx_trial_again - packets that left before are sent again
 * @trial: of the stage
 * @psn: PSN of the first one. The peer misses nothing before it, as far as this
 *	machine knows
 *
 * If that is the second packet of the train, the card may be the cause. It also
 * may if the packet left with the train and before the second one: a peer that
 * has got those but nothing behind the train has not noticed that anything is
 * missing. An earlier packet says nothing, but the train may prove to be missed
 * later. A peer that misses a later packet has the second one, or the network
 * has made a duplicate.
 *
 * Context: the stage's lock held.
 */
void arx_trial_again(struct arx_trial *trial, u32 psn)
{
	if (trial->state == ARX_TRIAL_NONE || trial->state == ARX_TRIAL_VOID ||
	    arx_psn_diff(psn, trial->psn) > 0)
		return;
	if (arx_psn_diff(psn, trial->from) >= 0)
		trial->state = ARX_TRIAL_AGAIN;
	else if (trial->state == ARX_TRIAL_SENT)
		trial->state = ARX_TRIAL_EARLIER;
}

/**
 * arx_trial_ends - the peer has what was sent before a PSN
 * @trial: of the stage
 * @psn: the PSN
 *
 * A train counts as lost only now: a peer that has died is not the card's
 * fault.
 *
 * Context: the stage's lock held.
 * Return: true if the train that was watched is among these packets, and its
 * packets had to be sent again.
 */
bool arx_trial_ends(struct arx_trial *trial, u32 psn)
{
	enum arx_trial_state state = trial->state;

	if (state == ARX_TRIAL_NONE || arx_psn_diff(psn, trial->psn) <= 0)
		return false;
	trial->state = ARX_TRIAL_NONE;
	if (state == ARX_TRIAL_AGAIN) {
		trial->lost++;
		return true;
	}
	if (state == ARX_TRIAL_SENT) {
		trial->lost = 0;
		trial->arrived = true;
	}
	return false;
}
