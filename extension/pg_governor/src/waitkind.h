/*
 * waitkind.h
 *		What the wait event of a session says about its use of the CPU.
 */
#ifndef GOVERNOR_WAITKIND_H
#define GOVERNOR_WAITKIND_H

#include "compat.h"

typedef enum GovernorWaitKind
{
	GOVERNOR_WAIT_NOT,			/* runs, or waits for something short */
	GOVERNOR_WAIT_FLUSH,		/* for its commit record to be on disk */
	GOVERNOR_WAIT_STANDBY,		/* for a synchronous standby */
	GOVERNOR_WAIT_LOCK,
	GOVERNOR_WAIT_OUTSIDE,		/* for its client, a timer, another server */
} GovernorWaitKind;

#define GOVERNOR_WAIT_KINDS 5

/* A session that waits for the next command of its client. */
#define GOVERNOR_IDLE_WAIT WAIT_EVENT_CLIENT_READ

extern GovernorWaitKind governor_wait_kind(uint32 wait_event_info);
extern bool governor_wait_is_discounted(GovernorWaitKind kind, int64 waiting_us);

#endif							/* GOVERNOR_WAITKIND_H */
