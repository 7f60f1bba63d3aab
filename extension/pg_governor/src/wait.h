/*
 * wait.h
 *		How this process waits in a queue, and every way in which that ends.
 */
#ifndef GOVERNOR_WAIT_H
#define GOVERNOR_WAIT_H

#include "snapshots.h"
#include "state.h"

typedef enum GovernorWaitEnd
{
	GOVERNOR_WAIT_FREE,			/* there was a slot after all */
	GOVERNOR_WAIT_ADMITTED,
	GOVERNOR_WAIT_OBSERVED,		/* it would have to wait, and does not */
	GOVERNOR_WAIT_WITHOUT,		/* the monitor is silent: it goes on without a slot */
	GOVERNOR_WAIT_MOVED,		/* it has to queue in another pool */
} GovernorWaitEnd;

extern void governor_wait_start(void);
extern GovernorWaitEnd governor_wait_for_slot(int gate, int role, bool at_begin, GovernorSnapshots *snapshots);

/* What a session that waits is waiting for, as pg_stat_activity names it. */
typedef enum GovernorWaitEvent
{
	GOVERNOR_WAITS_IN_QUEUE,
	GOVERNOR_WAITS_FOR_RESUME,
} GovernorWaitEvent;

extern void governor_wait_sleep(long timeout_ms, GovernorWaitEvent event);
extern bool governor_wait_holds_locks(void);
extern void governor_wait_quieten(ErrorData *error);

#endif							/* GOVERNOR_WAIT_H */
