/*
 * slot.h
 *		How one session takes a slot, keeps it, and releases it, and how the monitor
 *		takes it back: every change of a session's word but those of a
 *		queue.
 */
#ifndef GOVERNOR_SLOT_H
#define GOVERNOR_SLOT_H

#include "gate.h"
#include "state.h"

typedef enum GovernorEntry
{
	GOVERNOR_ENTERED,			/* has a slot */
	GOVERNOR_OPEN,				/* there is no limit, and no slot was taken */
	GOVERNOR_FULL,				/* would have to queue */
} GovernorEntry;

/* By the session itself. */
extern GovernorEntry governor_slot_take(int session, int gate, int role);
extern bool governor_slot_take_reserved(int session, int gate, uint32 slots);
extern void governor_slot_book(int session, int gate, int role);
extern bool governor_slot_keep_warm(int session);
extern bool governor_slot_resume(int session);
extern void governor_slot_release(int session);
extern void governor_slot_end(int session, GovernorLeave how);

/* By the monitor, for a session whose word it has seen. */
extern bool governor_slot_take_back(int session, uint64 seen);

#endif							/* GOVERNOR_SLOT_H */
