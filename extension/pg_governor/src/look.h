/*
 * look.h
 *		The monitor's look at who queues and who runs, and what follows from it.
 */
#ifndef GOVERNOR_LOOK_H
#define GOVERNOR_LOOK_H

#include "state.h"

/* What a look is to include. */
#define GOVERNOR_LOOK_AT_LOCKS 1	/* do waiters block others? */
#define GOVERNOR_LOOK_SAMPLE 2	/* for advice */

typedef enum GovernorLookAgain
{
	GOVERNOR_LOOK_WHEN_WOKEN,	/* nobody queues */
	GOVERNOR_LOOK_SLOWLY,		/* nobody queues, but a gate is wider than its limit */
	GOVERNOR_LOOK_SOON,			/* somebody queues */
} GovernorLookAgain;

extern void governor_look_start(void);
extern GovernorLookAgain governor_look(int what);

#endif							/* GOVERNOR_LOOK_H */
