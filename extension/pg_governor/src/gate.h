/*
 * gate.h
 *		A gate: slots, and the queue before them.  No hooks, no waiting here.
 */
#ifndef GOVERNOR_GATE_H
#define GOVERNOR_GATE_H

#include "state.h"

/* A reading of a gate's occupancy. */
typedef struct GovernorOccupancy
{
	uint32		taken;
	uint32		queued;
} GovernorOccupancy;

typedef enum GovernorEntry
{
	GOVERNOR_ENTERED,			/* has a slot */
	GOVERNOR_OPEN,				/* there is no limit, and no slot was taken */
	GOVERNOR_FULL,				/* would have to queue */
} GovernorEntry;

typedef enum GovernorJoin
{
	GOVERNOR_JOINED,			/* stands in the queue */
	GOVERNOR_JOIN_ENTERED,		/* a slot was free after all */
	GOVERNOR_JOIN_REFUSED,		/* the queue is too long */
} GovernorJoin;

extern GovernorOccupancy governor_gate_occupancy(GovernorGate *gate);

/* What a session does. */
extern GovernorEntry governor_gate_enter(int gate);
extern GovernorJoin governor_gate_join(int gate, int session);
extern bool governor_gate_leave(int gate, int session);
extern void governor_gate_release(int gate);
extern bool governor_gate_run_anyway(int gate, int session, GovernorReason reason);

/* What the monitor does. */
extern void governor_gate_admit_free(int gate);
extern bool governor_gate_admit_head(int gate, GovernorReason reason);

#endif							/* GOVERNOR_GATE_H */
