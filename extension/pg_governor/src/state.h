/*
 * state.h
 *		What the sessions of a server share: pools, gates, sessions.
 *
 * A pool is a name with four gates, one for each class of work.  A gate has a
 * number of slots and a queue.  A session is in one queue, or has one slot, or
 * neither.
 *
 * Locking:
 *	- A session's state is one atomic word (word.h), which also says at which
 *	  gate the session is and what it is counted in.  A slot is always released
 *	  according to the word that an atomic exchange or compare-and-swap took
 *	  away, never according to something read before.
 *	- A gate's occupancy (slots taken, sessions queued) is one atomic word.
 *	  While the queue is empty, slots are taken and released by compare-and-swap
 *	  alone.  The number of queued sessions changes only under the gate's LWLock.
 *	- The queue's links, the change from QUEUED to any other state and the gate's
 *	  counters belong to the gate's LWLock.
 *	- Between the change of a word and the change of a counter the word says
 *	  ENTERING or LEAVING, so that check.c can tell an error from a change that
 *	  is being made.
 *	- The registry of pools and roles is protected by GovernorShared.registry_lock.
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

/* Why a session was let in. */
typedef enum GovernorReason
{
	GOVERNOR_FREE,				/* a slot was free */
	GOVERNOR_AGAIN,				/* it had kept its slot warm */
	GOVERNOR_TURN,				/* it queued, and its turn came */
	GOVERNOR_BY_RESERVE,		/* a reserved slot */
	GOVERNOR_BY_TIMEOUT,		/* it had queued for queue_timeout */
	GOVERNOR_BY_BLOCKING,		/* somebody waits for a lock of this waiter */
	GOVERNOR_BY_STALL,			/* no slot had been released for stall_time */
	GOVERNOR_OPENED,			/* the limit was removed while it queued */
	GOVERNOR_BOOKED,			/* it could not queue any more, and counts nevertheless */
	GOVERNOR_BY_HAND,			/* by pg_governor_admit() */
} GovernorReason;

#define GOVERNOR_REASONS 10

/* What others want of a session that queues; it reads this when it wakes. */
typedef enum GovernorOrder
{
	GOVERNOR_ORDER_NONE,
	GOVERNOR_ORDER_SHED,		/* give up, since the queue is too slow */
	GOVERNOR_ORDER_EVICT,		/* give up, by pg_governor_evict() */
	GOVERNOR_ORDER_MOVE,		/* queue in another pool, by pg_governor_move() */
} GovernorOrder;

/* By what a gate has as many slots as it has, by the monitor's last look. */
typedef enum GovernorEnforced
{
	GOVERNOR_ENFORCED_LIMIT,	/* its limit alone */
	GOVERNOR_ENFORCED_OVERLOAD, /* overload_factor times that: what works is short */
	GOVERNOR_ENFORCED_RAISED,	/* more: for those who are long, flush, stall or do not work */
	GOVERNOR_ENFORCED_LOWERED,	/* fewer: for parallel workers */
	GOVERNOR_ENFORCED_MOVED,	/* runnable_per_cpu has moved the limit */
	GOVERNOR_ENFORCED_FOUND,	/* find_limit has */
} GovernorEnforced;

#define GOVERNOR_NOBODY (-1)

/* Two cache lines, which many processors fetch together. */
#define GOVERNOR_PAD 128

/* Before a member: it, and so the structure around it, begins on cache lines of its own. */
#ifdef pg_attribute_aligned
#define GOVERNOR_ALIGNED pg_attribute_aligned(GOVERNOR_PAD)
#else
#define GOVERNOR_ALIGNED
#endif

/* Waits by powers of two of a millisecond: < 1, < 2, < 4 … < 16384, longer. */
#define GOVERNOR_WAIT_BUCKETS 16

/*
 * Roles of a pool whose shares are told apart.  Index 0 is everybody while
 * role_share is 100; the last one is shared by all further roles.
 */
#define GOVERNOR_ROLES 32
#define GOVERNOR_ROLE_ANY 0
#define GOVERNOR_ROLE_OTHERS (GOVERNOR_ROLES - 1)

typedef struct GovernorGateStats
{
	uint64		admits[GOVERNOR_REASONS];
	uint64		waits;
	uint64		timeouts;
	uint64		refused;
	uint64		refused_early;	/* of these, by a deadline that they would have missed */
	uint64		cancelled;
	uint64		stalls;
	uint64		became_long;
	uint64		wait_us_total;
	uint64		wait_us_max;
	uint64		wait_buckets[GOVERNOR_WAIT_BUCKETS];
} GovernorGateStats;

/* What the monitor has sampled, for advice.  Only the monitor writes. */
typedef struct GovernorSample
{
	uint64		looks;
	uint64		sessions;		/* sums over all looks */
	uint64		on_cpu;
	uint64		on_locks;
	uint64		on_flush;
	uint64		outside;
	uint32		sessions_max;
} GovernorSample;

typedef struct GovernorGate
{
	/* Written by every pass. */
	union
	{
		/* high half: sessions queued; low half: slots taken */
		GOVERNOR_ALIGNED pg_atomic_uint64 occupancy;
		char		occupancy_pad[GOVERNOR_PAD];
	};

	/* Read by every pass, written by the monitor. */
	union
	{
		struct
		{
			/* slots that may be taken now: the limit and what is added; 0 = open */
			pg_atomic_uint32 capacity;
			pg_atomic_uint32 limit;
			/* what long ones, flushes and stalls may raise it to; 0 = open */
			pg_atomic_uint32 hard_max;
			/* the same with those who do not work: stalls let nobody in beyond it */
			pg_atomic_uint32 ceiling;
			/* slots, beside those that are discounted, and places in the queue, that one role may have; 0 = any */
			pg_atomic_uint32 role_slots;
			pg_atomic_uint32 role_places;
			/* the wait that each place in the queue has meant lately; 0 = not known */
			pg_atomic_uint32 place_us;
			/* for how long a transaction has had its slot lately, on average; 0 = not known */
			pg_atomic_uint32 service_us;
			/* what find_limit has found; 0 = nothing */
			pg_atomic_uint32 found_limit;
			pg_atomic_uint32 enforced;	/* a GovernorEnforced */
		};
		char		limits_pad[GOVERNOR_PAD];
	};

	/* The queue, and what only those touch who queue or see a queue. */
	pg_atomic_uint64 head_since;	/* when the oldest waiter began to wait */
	pg_atomic_uint64 progress;	/* slots released while the queue was not empty */
	uint32		waiting_roles;	/* bit map of the queues that are not empty */
	int			heads[GOVERNOR_ROLES];
	int			tails[GOVERNOR_ROLES];
	uint32		role_queued[GOVERNOR_ROLES];
	pg_atomic_uint32 role_taken[GOVERNOR_ROLES];
	pg_atomic_uint32 role_discounted[GOVERNOR_ROLES];	/* of these, by the monitor's last look */
	GovernorGateStats stats;
	GovernorSample sample;
} GovernorGate;

/* A place for a pool is empty while its name is. */
typedef struct GovernorPool
{
	char		name[NAMEDATALEN];
	bool		retired;		/* not listed any more, and left by its sessions one by one */
	Oid			roles[GOVERNOR_ROLES];
	/* by the settings; written by the monitor, read by those who queue */
	pg_atomic_uint32 queue_timeout_ms;
	pg_atomic_uint32 on_timeout;
	pg_atomic_uint32 policy;
	pg_atomic_uint32 weight;
	pg_atomic_uint32 paused;
	pg_atomic_uint32 observing; /* nobody waits at its gates: queues are only kept */
	GovernorSample ungated;		/* sessions that work and have met no gate */
	GovernorGate gates[GOVERNOR_CLASSES];
} GovernorPool;

#ifdef pg_attribute_aligned
StaticAssertDecl(sizeof(GovernorGate) % GOVERNOR_PAD == 0 && sizeof(GovernorPool) % GOVERNOR_PAD == 0,
				 "no gate begins on the cache lines of another one");
#endif
StaticAssertDecl(offsetof(GovernorGate, capacity) == GOVERNOR_PAD &&
				 offsetof(GovernorGate, head_since) == 2 * GOVERNOR_PAD,
				 "what a pass writes, what it reads and the queue are on different cache lines");

/* One for every process slot; its word is in GovernorShared.words. */
typedef struct GovernorSession
{
	/* Who it is, and its place in a queue. */
	union
	{
		struct
		{
			int			pid;
			int			pool;
			int			role;	/* index among the pool's roles */
			int			next;	/* under the lock of the gate where it queues */
			int			previous;
			uint64		queued_since;
			pg_atomic_uint32 order; /* a GovernorOrder */
			pg_atomic_uint32 moved_to;	/* a pool + 1, by hand; 0 = none */
			pg_atomic_uint64 paused_since;	/* 0 = not held by a pause */
			/* within a command of several transactions, or before a chained one */
			pg_atomic_uint32 busy;
			Oid			database;
			bool		drains; /* waits in pg_governor_pause() for the others */
			struct PgBackendStatus *status; /* what pg_stat_activity shows of it */
			/* neither a superuser nor another one that is privileged */
			bool		may_be_cancelled;
			pg_atomic_uint32 cancel;	/* cancel.c */
			uint32		cancel_slots;
			uint32		cancel_waiters;
			/* written by the monitor */
			bool		discounted;
			bool		is_long;
			bool		blocks_others;
		};
		char		identity_pad[GOVERNOR_PAD];
	};

	/* What changes with every transaction.  Times are of the monotonic clock. */
	union
	{
		struct
		{
			uint64		since;	/* let in, or became warm */
			/* grows with every statement: two equal waits can be told apart */
			uint32		statements;
			/* since the session began, changed its pool, or counts were reset */
			pg_atomic_uint64 admits_free[GOVERNOR_CLASSES];
			pg_atomic_uint64 admits_again[GOVERNOR_CLASSES];
			pg_atomic_uint64 waits;
			pg_atomic_uint64 wait_us_total;
			pg_atomic_uint64 wait_us_max;
		};
		char		work_pad[GOVERNOR_PAD];
	};
} GovernorSession;

StaticAssertDecl(sizeof(GovernorSession) == 2 * GOVERNOR_PAD,
				 "a session's parts fit into two cache lines each");

/* What is done about a session that keeps slots from others, or why nothing is. */
typedef enum GovernorCulpritVerdict
{
	GOVERNOR_VERDICT_WATCHED,	/* it keeps too few, or not for long enough */
	GOVERNOR_VERDICT_CANCELLED,
	GOVERNOR_VERDICT_NAMED,		/* it would be cancelled if cancel_culprit were on */
	GOVERNOR_VERDICT_CANCELLED_BEFORE,
	GOVERNOR_VERDICT_PRIVILEGED,
	GOVERNOR_VERDICT_NOT_GATED,
	GOVERNOR_VERDICT_CLIENT,	/* a cancel does nothing while it waits for its client */
	GOVERNOR_VERDICT_ENDS,
} GovernorCulpritVerdict;

/* Sessions of one role, application and query that have kept slots from others; pid is 0 while the place is empty. */
typedef struct GovernorCulprit
{
	Oid			role;
	int			pid;			/* the last one, as all that follows but the sums */
	int64		query_id;		/* 0 = none */
	char		application[NAMEDATALEN];
	int			gate;
	char		pool[NAMEDATALEN];
	GovernorCulpritVerdict verdict;
	double		slots;
	TimestampTz seen_at;
	uint64		word;			/* of its transaction */
	uint64		named_last;
	uint64		slot_us;
	uint64		waiter_us;
	uint64		transactions;
	uint64		cancelled;
	uint64		named;
} GovernorCulprit;

#define GOVERNOR_CULPRITS 32

/* Rules of pg_governor.pool_rules. */
#define GOVERNOR_RULES_MAX 100

/* What a rule has done since the reset, or since the rules were changed. */
typedef struct GovernorRuleCounts
{
	pg_atomic_uint64 chosen;	/* transactions that got their pool by it */
	pg_atomic_uint64 denied;	/* and those that did not, for their role */
} GovernorRuleCounts;

/* What is told in the log at most once in some seconds each. */
typedef enum GovernorNews
{
	GOVERNOR_NEWS_TIMEOUT,
	GOVERNOR_NEWS_STALL,
	GOVERNOR_NEWS_BLOCKING,
	GOVERNOR_NEWS_HARD_MAX,
	GOVERNOR_NEWS_IDLE,
	GOVERNOR_NEWS_SHED,
	GOVERNOR_NEWS_REFUSED,
	GOVERNOR_NEWS_GAVE_UP,
} GovernorNews;

#define GOVERNOR_NEWS_KINDS 8

/* Databases that pg_governor_pause() can hold at the same time. */
#define GOVERNOR_PAUSED_DATABASES 16

#define GOVERNOR_PROBLEMS_SIZE 4096

typedef struct GovernorShared
{
	LWLock	   *registry_lock;
	LWLockPadded *gate_locks;
	int			pool_count;		/* places ever used */
	int			pool_max;
	int			session_count;
	pg_atomic_uint32 pools_generation;	/* grows when a pool comes or goes */
	uint32		pools_without_room;
	/* settings that change nothing, by the server's own values, a line each; under registry_lock */
	char		setting_problems[GOVERNOR_PROBLEMS_SIZE];
	GovernorCulprit culprits[GOVERNOR_CULPRITS];	/* under registry_lock */
	pg_atomic_uint32 unknown_sessions;	/* whose pool was not listed */
	char		unknown_pool[NAMEDATALEN];	/* the last such name */

	/* held by pg_governor_pause(): how many pools and databases; which databases */
	pg_atomic_uint32 pauses;
	Oid			paused_databases[GOVERNOR_PAUSED_DATABASES];
	bool		pause_new_pools;	/* all pools are paused: those that come, too */

	/* the monitor, without which gates open after some seconds */
	int			monitor;		/* its process number, or GOVERNOR_NOBODY */
	int			monitor_pid;
	pg_atomic_uint32 monitor_asleep;
	pg_atomic_uint64 monitor_beat;
	pg_atomic_uint64 silent_beat;	/* the beat after which the monitor was found to be gone */
	pg_atomic_uint32 enabled;	/* 0: nobody waits, and nothing is counted */
	pg_atomic_uint32 observing; /* nobody waits: queues are only kept */
	pg_atomic_uint32 strict;	/* nothing is let in beyond a limit */

	pg_atomic_uint32 reserved_taken;
	pg_atomic_uint64 stats_reset;	/* a TimestampTz */
	pg_atomic_uint64 repairs;
	pg_atomic_uint64 news_at[GOVERNOR_NEWS_KINDS];
	pg_atomic_uint64 news_held_back[GOVERNOR_NEWS_KINDS];

	/* the limit over all pools; nothing is counted while it is 0 */
	char		total_pad_before[GOVERNOR_PAD];
	pg_atomic_uint32 total_taken;
	char		total_pad_between[GOVERNOR_PAD];
	pg_atomic_uint32 total_capacity;
	pg_atomic_uint32 total_limit;
	pg_atomic_uint32 total_hard_max;
	pg_atomic_uint32 total_ceiling;
	char		total_pad_after[GOVERNOR_PAD];

	/* the monitor's rules, and what they have done: a session counts while it has the same ones */
	pg_atomic_uint64 rules_fingerprint;
	GovernorRuleCounts rule_counts[GOVERNOR_RULES_MAX];
	char		rules_pad_after[GOVERNOR_PAD];

	GovernorSession *sessions;
	pg_atomic_uint64 *words;	/* dense: the monitor reads them all */
	GovernorPool *pools;
} GovernorShared;

extern GovernorShared *governor;

extern Size governor_shared_size(int pools, int sessions);
extern void governor_shared_init(int pools, int sessions);
extern void governor_shared_request(void);
extern void governor_shared_startup(void);

static inline GovernorSession *
governor_session_at(int index)
{
	Assert(index >= 0 && index < governor->session_count);
	return &governor->sessions[index];
}

static inline GovernorGate *
governor_gate_at(int gate)
{
	Assert(gate >= 0 && gate < governor->pool_max * GOVERNOR_CLASSES);
	return &governor->pools[gate / GOVERNOR_CLASSES].gates[gate % GOVERNOR_CLASSES];
}

static inline GovernorClass
governor_class_of_gate(int gate)
{
	Assert(gate >= 0);
	return (GovernorClass) (gate % GOVERNOR_CLASSES);
}

static inline GovernorPool *
governor_pool_of_gate(int gate)
{
	Assert(gate >= 0 && gate < governor->pool_max * GOVERNOR_CLASSES);
	return &governor->pools[gate / GOVERNOR_CLASSES];
}

static inline bool
governor_pool_is_used(int pool)
{
	return governor->pools[pool].name[0] != '\0';
}

/* Whether nobody waits at this gate, by the mode of the server or of its pool. */
static inline bool
governor_gate_is_observed(int gate)
{
	return pg_atomic_read_u32(&governor->observing) != 0 ||
		pg_atomic_read_u32(&governor_pool_of_gate(gate)->observing) != 0;
}

static inline int
governor_gate_count(void)
{
	return governor->pool_count * GOVERNOR_CLASSES;
}

static inline LWLock *
governor_gate_lock(int gate)
{
	Assert(gate >= 0 && gate < governor->pool_max * GOVERNOR_CLASSES);
	return &governor->gate_locks[gate].lock;
}

#endif							/* GOVERNOR_STATE_H */
