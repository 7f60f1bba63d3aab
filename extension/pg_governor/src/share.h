/*
 * share.h
 *		Bounds beside a gate's own: the limit over all pools, and a role's share.
 */
#ifndef GOVERNOR_SHARE_H
#define GOVERNOR_SHARE_H

#include "state.h"

extern bool governor_share_is_limited(void);
extern uint32 governor_share_of_role(uint32 slots);
extern uint32 governor_share_working(GovernorGate *gate, int role);
extern bool governor_share_take(int gate, int role, uint64 *flags);
extern uint64 governor_share_force(int gate, int role);
extern void governor_share_release(int gate, int role, uint64 flags);
extern bool governor_share_is_at_ceiling(void);
extern void governor_share_hand_on(void);

#endif							/* GOVERNOR_SHARE_H */
