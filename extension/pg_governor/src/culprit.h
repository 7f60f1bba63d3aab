/*
 * culprit.h
 *		The sessions that keep others waiting for slots, and what is done about it.
 */
#ifndef GOVERNOR_CULPRIT_H
#define GOVERNOR_CULPRIT_H

#include "state.h"

/* Between two looks. */
#define GOVERNOR_CULPRIT_LOOK_MS 100

/* The shares of a gate's slots that count: one session keeps so many, its own and others'. */
typedef struct GovernorBlame
{
	double		slots;			/* kept by the session, at one gate */
	uint32		taken;			/* of all that are taken there */
	uint32		waiters;		/* who queue there, or were let in beyond the limit */
	int64		for_us;			/* without a break, by the same transaction */
} GovernorBlame;

extern bool governor_culprit_is(GovernorBlame blame, int64 needed_us);
extern void governor_culprit_start(void);
extern void governor_culprit_look(int64 now);

#endif							/* GOVERNOR_CULPRIT_H */
