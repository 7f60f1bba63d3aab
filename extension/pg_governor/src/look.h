/*
 * look.h
 *		The monitor's look at who queues and who runs.
 */
#ifndef GOVERNOR_LOOK_H
#define GOVERNOR_LOOK_H

#include "state.h"
#include "waitkind.h"

/* What a look is to include. */
#define GOVERNOR_LOOK_AT_LOCKS 1	/* do waiters block others? */
#define GOVERNOR_LOOK_SAMPLE 2	/* for advice */

typedef enum GovernorLookAgain
{
	GOVERNOR_LOOK_WHEN_WOKEN,	/* nobody queues */
	GOVERNOR_LOOK_SLOWLY,		/* nobody queues, but a gate is wider than its limit */
	GOVERNOR_LOOK_SOON,			/* somebody queues */
} GovernorLookAgain;

/* Of idle holders so many are named in the log. */
#define GOVERNOR_IDLE_NAMED 8

/* What a look has found out about a gate. */
typedef struct GovernorGateLook
{
	uint32		discounted;
	uint32		role_discounted[GOVERNOR_ROLES];	/* of these, where roles have shares */
	uint32		counted;		/* have a slot and are not discounted */
	uint32		young;			/* of these, let in a short time ago */
	uint32		flushing;
	uint32		long_ones;		/* not discounted */
	uint32		stalled;		/* neither, and let in before stall_time */
	uint32		workers;		/* parallel workers that work for those with a slot */
	uint32		waiting;		/* really, and not only observed */
	uint32		idle;			/* in a transaction, and without a command for long */
	int			idle_pids[GOVERNOR_IDLE_NAMED];
	uint32		kinds[GOVERNOR_WAIT_KINDS];
} GovernorGateLook;

extern void governor_look_start(void);
extern GovernorLookAgain governor_look(int what);

#endif							/* GOVERNOR_LOOK_H */
