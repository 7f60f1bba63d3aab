/*
 * snapshots.h
 *		The snapshots of a statement that waits before it executes.
 */
#ifndef GOVERNOR_SNAPSHOTS_H
#define GOVERNOR_SNAPSHOTS_H

#include "compat.h"

#include "executor/execdesc.h"
#include "utils/portal.h"

/* What a statement has given up, and takes anew when its wait is over. */
typedef struct GovernorSnapshots
{
	/* as of a GovernorStatement */
	Portal		portal;
	QueryDesc  *query;
	bool		of_query;
	bool		of_planner;
	bool		of_portal;
	bool		of_result;
} GovernorSnapshots;

extern void governor_snapshots_give_up(GovernorSnapshots *snapshots);
extern void governor_snapshots_renew(GovernorSnapshots *snapshots);

#endif							/* GOVERNOR_SNAPSHOTS_H */
