/*
 * shed.h
 *		Which sessions are refused because the queue is too slow for them.
 */
#ifndef GOVERNOR_SHED_H
#define GOVERNOR_SHED_H

#include "state.h"

/* What policy "codel" remembers of a gate. */
typedef struct GovernorCodel
{
	int64		first_above_at;	/* 0: the wait is below the target */
	int64		shed_at;		/* the next one is refused then */
	uint32		shed;			/* refused since the wait was below the target */
} GovernorCodel;

/* How long each place in a queue has meant lately. */
typedef struct GovernorPace
{
	uint64		progress;
	int64		progress_at;
} GovernorPace;

extern bool governor_shed_due(GovernorCodel *codel, int64 now, int64 wait_us, int64 target_us,
							  int64 interval_us);
extern uint32 governor_shed_pace(GovernorPace *pace, int64 now, uint64 progress, uint32 before_us);
extern uint32 governor_shed_service(uint32 working, uint32 place_us, uint32 before_us);

#endif							/* GOVERNOR_SHED_H */
