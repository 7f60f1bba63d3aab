/*
 * tally.h
 *		What has to be counted over all sessions for the view of gates.
 */
#ifndef GOVERNOR_TALLY_H
#define GOVERNOR_TALLY_H

#include "state.h"

typedef struct GovernorTally
{
	int			running;
	int			warm;
	int			reserved;
	int			discounted;
	int			long_ones;
	uint64		admits_free;
	uint64		admits_again;
} GovernorTally;

/* Adds to the tallies of so many gates. */
extern void governor_tally_sessions(GovernorTally *tallies, int gates);

#endif							/* GOVERNOR_TALLY_H */
