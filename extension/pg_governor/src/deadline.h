/*
 * deadline.h
 *		Whether who comes to a queue can still be done in time.
 */
#ifndef GOVERNOR_DEADLINE_H
#define GOVERNOR_DEADLINE_H

#include "postgres.h"

#define GOVERNOR_NO_DEADLINE PG_INT64_MAX

/* By when a session has to have a slot, and by when its work has to be done; both from now on. */
typedef struct GovernorDeadlines
{
	int64		slot_ms;
	int64		done_ms;
} GovernorDeadlines;

/* What a gate has shown lately; 0 = not known. */
typedef struct GovernorForecast
{
	int64		wait_us;		/* of who joins the queue now */
	int64		service_us;		/* of a transaction, once it has a slot */
} GovernorForecast;

/* By which deadline a session is too late. */
typedef struct GovernorVerdict
{
	bool		too_late;
	bool		by_work;		/* it would get a slot in time, and not be done */
	int64		deadline_ms;
	int64		needed_ms;
	int64		retry_after_ms; /* when the queue is short enough, if nobody else comes */
} GovernorVerdict;

extern void governor_deadline_add(int64 *deadline_ms, int64 other_ms);
extern GovernorVerdict governor_deadline_judge(GovernorDeadlines deadlines, GovernorForecast forecast);

#endif							/* GOVERNOR_DEADLINE_H */
