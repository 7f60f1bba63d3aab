/*
 * queue.h
 *		The queue before a gate.  Everything here is under the gate's lock.
 */
#ifndef GOVERNOR_QUEUE_H
#define GOVERNOR_QUEUE_H

#include "state.h"

extern void governor_queue_append(GovernorGate *gate, int session, int role);
extern void governor_queue_remove(GovernorGate *gate, int session, int role);
extern int	governor_queue_first(GovernorGate *gate);
extern void governor_queue_count_wait(GovernorGateStats *stats, uint64 wait_us);

#endif							/* GOVERNOR_QUEUE_H */
