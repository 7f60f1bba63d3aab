/*
 * settle.h
 *		How many slots each gate has after a look, and who is let in by that.
 */
#ifndef GOVERNOR_SETTLE_H
#define GOVERNOR_SETTLE_H

#include "look.h"

extern void governor_settle_start(void);
extern bool governor_settle_is_wider(void);
extern void governor_settle(const GovernorGateLook *looks, int64 now);
extern void governor_settle_found_long(int gate);
extern void governor_settle_end_idle(int pid, int64 idle_us);

#endif							/* GOVERNOR_SETTLE_H */
