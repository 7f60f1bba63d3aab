/*
 * find.h
 *		The limits that the monitor finds, between the CPUs and what the settings say.
 */
#ifndef GOVERNOR_FIND_H
#define GOVERNOR_FIND_H

#include "state.h"

/* What settle.c knows of a gate. */
typedef struct GovernorFindSight
{
	uint32		limit;			/* by the settings */
	int			cpus;
	uint32		wanted;			/* sessions that work with a slot or queue for one */
	int64		now;
} GovernorFindSight;

extern void governor_find_start(void);
extern bool governor_find_wants_looks(void);
extern uint32 governor_find_limit_of(int gate, GovernorFindSight sight);
extern void governor_find_forget(int gate);

#endif							/* GOVERNOR_FIND_H */
