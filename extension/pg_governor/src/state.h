/*
 * state.h
 *		What the sessions of a server share: pools, gates, sessions.
 *
 * A pool is a name with four gates, one for each class of work.  A gate has a
 * number of slots and a queue.  A session stands in one queue, or has one slot,
 * or neither.
 *
 * Locking:
 *	- A gate's occupancy (slots taken, sessions queued) is one atomic word.
 *	  While nobody queues, slots are taken and given back by compare-and-swap
 *	  alone.  The number of queued sessions changes only under the gate's LWLock.
 *	- The queue's links (head, tail, next, previous), the state QUEUED and the
 *	  gate's counters are changed only under the gate's LWLock.
 *	- A session's state WARM is left by compare-and-swap: either its own process
 *	  goes on, or somebody takes the slot back.
 *	- The registry of pools is protected by GovernorShared.registry_lock.
 *	- No lock is held across a wait, another hook or CHECK_FOR_INTERRUPTS.
 *
 * The memory is bounded: max_pools × 4 gates and one session for every process
 * slot.  It is made at server start and made anew after a crash, so nothing
 * can leak from one life of the server into the next.
 */
#ifndef GOVERNOR_STATE_H
#define GOVERNOR_STATE_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "port/atomics.h"
#include "storage/lwlock.h"

typedef enum GovernorClass
{
	GOVERNOR_QUERY,				/* a SELECT outside a transaction block */
	GOVERNOR_BIG_QUERY,			/* the same, by hint or by planner cost */
	GOVERNOR_TRANSACTION,		/* BEGIN … COMMIT */
	GOVERNOR_AUTOCOMMIT,		/* INSERT, UPDATE, COPY, CALL … outside a block */
} GovernorClass;

#define GOVERNOR_CLASSES 4

extern const char *const governor_class_names[GOVERNOR_CLASSES];

typedef enum GovernorSessionState
{
	GOVERNOR_IDLE,				/* has no slot and wants none */
	GOVERNOR_QUEUED,			/* waits in the queue of its gate */
	GOVERNOR_RUNNING,			/* has a slot and works */
	GOVERNOR_WARM,				/* keeps its slot for its next transaction */
	GOVERNOR_RESERVED,			/* works in a reserved slot */
} GovernorSessionState;

/* Why a session was let in. */
typedef enum GovernorReason
{
	GOVERNOR_FREE,				/* a slot was free */
	GOVERNOR_AGAIN,				/* it had kept its slot warm */
	GOVERNOR_TURN,				/* it queued, and its turn came */
	GOVERNOR_BY_RESERVE,		/* a reserved slot */
	GOVERNOR_BY_TIMEOUT,		/* it had queued for queue_timeout */
	GOVERNOR_BY_BLOCKING,		/* somebody waits for a lock of this waiter */
	GOVERNOR_BY_STALL,			/* no slot had been given back for stall_time */
	GOVERNOR_OPENED,			/* the limit was removed while it queued */
} GovernorReason;

#define GOVERNOR_REASONS 8

#define GOVERNOR_NOBODY (-1)

/* Waits by powers of two of a millisecond: < 1, < 2, < 4 … < 16384, longer. */
#define GOVERNOR_WAIT_BUCKETS 16

typedef struct GovernorGateStats
{
	uint64		admits[GOVERNOR_REASONS];
	uint64		waits;
	uint64		timeouts;
	uint64		refused;
	uint64		cancelled;
	uint64		stalls;
	uint64		wait_us_total;
	uint64		wait_us_max;
	uint64		wait_buckets[GOVERNOR_WAIT_BUCKETS];
} GovernorGateStats;

typedef struct GovernorGate
{
	/* high half: sessions queued; low half: slots taken */
	pg_atomic_uint64 occupancy;
	/* slots that may be taken now: the limit and the discounts; 0 = gate open */
	pg_atomic_uint32 capacity;
	pg_atomic_uint32 limit;
	/* when the head of the queue began to wait */
	pg_atomic_uint64 head_since;
	/* transactions that ended while somebody queued: the stall rule's clock */
	pg_atomic_uint64 progress;

	int			head;
	int			tail;
	GovernorGateStats stats;
} GovernorGate;

typedef struct GovernorPool
{
	char		name[NAMEDATALEN];
	GovernorGate gates[GOVERNOR_CLASSES];
} GovernorPool;

/* One for every process slot; only its own process writes what is not marked. */
typedef struct GovernorSession
{
	pg_atomic_uint32 state;
	int			pid;
	int			gate;			/* pool × 4 + class, where it queues or runs */
	int			pool;
	int			next;			/* in the queue, under the gate's lock */
	int			previous;
	TimestampTz since;			/* began to queue, or was let in */
	/* grows with every statement, so that two equal waits can be told apart */
	uint32		statements;
	/* written by the monitor */
	bool		discounted;
	bool		blocks_others;
	/* since the session began, changed its pool, or statistics were reset */
	pg_atomic_uint64 admits_free[GOVERNOR_CLASSES];
	pg_atomic_uint64 admits_again[GOVERNOR_CLASSES];
	pg_atomic_uint64 waits;
	pg_atomic_uint64 wait_us_total;
	pg_atomic_uint64 wait_us_max;
} GovernorSession;

/* A session's fields change with every transaction: one cache line pair each. */
typedef union GovernorSessionPadded
{
	GovernorSession session;
	char		pad[256];
} GovernorSessionPadded;

typedef struct GovernorShared
{
	LWLock	   *registry_lock;
	LWLockPadded *gate_locks;
	int			pool_count;
	int			pool_max;
	int			session_count;
	bool		registry_full_told;

	/* the monitor: without it no gate is closed */
	int			monitor;		/* its process number, or GOVERNOR_NOBODY */
	pg_atomic_uint32 monitor_asleep;
	pg_atomic_uint64 monitor_beat;
	pg_atomic_uint32 limits_stale;	/* a pool was added since they were published */

	pg_atomic_uint32 reserved_taken;
	pg_atomic_uint64 stats_reset;

	GovernorSessionPadded *sessions;
	GovernorPool pools[FLEXIBLE_ARRAY_MEMBER];
} GovernorShared;

extern GovernorShared *governor;

extern Size governor_shared_size(void);
extern void governor_shared_request(void);
extern void governor_shared_startup(void);

static inline GovernorSession *
governor_session_at(int index)
{
	return &governor->sessions[index].session;
}

static inline GovernorGate *
governor_gate_at(int gate)
{
	return &governor->pools[gate / GOVERNOR_CLASSES].gates[gate % GOVERNOR_CLASSES];
}

static inline LWLock *
governor_gate_lock(int gate)
{
	return &governor->gate_locks[gate].lock;
}

#endif							/* GOVERNOR_STATE_H */
