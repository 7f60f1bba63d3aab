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

typedef enum GovernorJoin
{
	GOVERNOR_JOINED,			/* is in the queue */
	GOVERNOR_JOIN_ENTERED,		/* a slot was free after all */
	GOVERNOR_JOIN_REFUSED,		/* the queue is too long */
} GovernorJoin;

/* How a session leaves a queue before its turn. */
typedef enum GovernorLeave
{
	GOVERNOR_LEAVE_CANCELLED,
	GOVERNOR_LEAVE_OBSERVED,	/* it never waited, and is done */
	GOVERNOR_LEAVE_MOVED,		/* it queues elsewhere next */
} GovernorLeave;

extern GovernorOccupancy governor_gate_occupancy(GovernorGate *gate);
extern bool governor_gate_anyone_queued(void);

/* Slots without the queue. */
extern bool governor_gate_take(int gate, int role, uint64 *flags);
extern uint64 governor_gate_take_anyway(int gate, int role);
extern void governor_gate_release(int gate, int role, uint64 flags);

/* The queue: what a session does. */
extern GovernorJoin governor_gate_join(int gate, int session, int role, uint64 flags);
extern bool governor_gate_leave(int session, GovernorLeave how);
extern bool governor_gate_run_anyway(int session, GovernorReason reason);

/* The queue: what others do with it. */
extern void governor_gate_admit_free(int gate);
extern bool governor_gate_admit_one(int gate);
extern bool governor_gate_admit_stalled(int gate);
extern bool governor_gate_order_head(int gate, GovernorOrder order);

#endif							/* GOVERNOR_GATE_H */
