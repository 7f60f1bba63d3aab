/*
 * block.c
 *		Lets those in who queue with a lock that others wait for.
 *
 * A session that queues for a gate, and has a lock for which a session with a slot
 * of that gate waits, might wait for just this slot: a deadlock that PostgreSQL's
 * detector cannot see.  It is let in, beyond every bound but one: as many at each
 * look as the gate has slots.  The one who waits may wait for others in between,
 * who wait for that lock themselves, or behind others in the queue of a lock.
 *
 * Of the others who block somebody, such as a LOCK TABLE without a slot, a few
 * are let in at each look, the oldest first: what runs goes on in front of them, but
 * a circle over several gates has to end too.  Under "strict" there are none of
 * these, so that it is the slots of all gates that count for the first.  Of those as many
 * are in beyond a limit as sessions with a slot wait for a lock, which do no work meanwhile.
 *
 * It reads what other processes wait for without their locks, and compares
 * addresses of locks only: a wrong look is corrected by the next one.
 */
#include "compat.h"

#include "storage/lwlock.h"
#include "utils/memutils.h"

#include "block.h"
#include "gate.h"
#include "news.h"
#include "word.h"

/* Let in at one look of those who block nobody with a slot of their gate. */
#define OTHERS_PER_LOOK 2

/* Of those who wait for locks so many are looked at, who have a slot first. */
#define WAITERS_MAX 256

#define ANY_GATE (-2)

/* A process that waits for a lock. */
typedef struct LockWaiter
{
	int			process;
	LOCK	   *lock;
	LOCKMODE	mode;
	int			gate;			/* whose slot it has, or GOVERNOR_NOBODY */
	bool		is_recovery;	/* it replays WAL, and everything waits for it */
	bool		stops_slot;		/* a slot of the gate in question, or of any, waits for it */
} LockWaiter;

/* A session that queues with locks. */
typedef struct Blocker
{
	int			session;
	int			gate;
	uint64		since;
} Blocker;

static LockWaiter *waiters;
static int	waiter_count;
static Blocker *blockers;
static int	blocker_count;

static void find_blockers(void);
static void find_waiters(void);
static void add_recovery(void);
static void add_waiters(bool with_slot);
static int	mark_waiters(int gate);
static bool holds_what_is_waited_for(int process, bool by_marked);
static void let_in(int *room_of_others);
static int	count_let_in(void);
static int	compare(const void *a, const void *b);

void
governor_block_start(void)
{
	waiters = MemoryContextAllocZero(TopMemoryContext, WAITERS_MAX * sizeof(LockWaiter));
	blockers = MemoryContextAllocZero(TopMemoryContext, governor->session_count * sizeof(Blocker));
}

/* Thousands wait at BEGIN with no lock at all: of them only the words are read. */
void
governor_block_look(void)
{
	int			room_of_others = pg_atomic_read_u32(&governor->strict) ? 0 : OTHERS_PER_LOOK;

	find_blockers();
	if (blocker_count == 0)
		return;
	find_waiters();
	let_in(&room_of_others);
}

static void
find_blockers(void)
{
	blocker_count = 0;
	for (int i = 0; i < governor->session_count; i++)
	{
		uint64		word = pg_atomic_read_u64(governor_word_at(i));
		int			gate = governor_word_gate(word);

		if (governor_word_state(word) == GOVERNOR_QUEUED && (word & GOVERNOR_HOLDING) &&
			!(word & GOVERNOR_OBSERVED) && gate >= 0 && gate < governor_gate_count())
			blockers[blocker_count++] = (Blocker)
			{
				.session = i, .gate = gate, .since = governor_session_at(i)->queued_since
			};
	}
	qsort(blockers, blocker_count, sizeof(Blocker), compare);
}

static void
find_waiters(void)
{
	waiter_count = 0;
	add_recovery();
	add_waiters(true);
	add_waiters(false);
}

/*
 * The process that replays WAL on a standby, after the processes of sessions among all: it waits for the
 * locks of queries, and what the primary has committed waits behind it.
 */
static void
add_recovery(void)
{
	for (int i = governor->session_count; i < ProcGlobal->allProcCount && waiter_count < WAITERS_MAX; i++)
	{
		PGPROC	   *proc = &ProcGlobal->allProcs[i];
		LOCK	   *lock = *(LOCK *volatile *) &proc->waitLock;

		if (lock != NULL)
			waiters[waiter_count++] = (LockWaiter)
			{
				.process = i, .lock = lock, .mode = *(volatile LOCKMODE *) &proc->waitLockMode,
					.gate = GOVERNOR_NOBODY, .is_recovery = true
			};
	}
}

static void
add_waiters(bool with_slot)
{
	for (int i = 0; i < governor->session_count && waiter_count < WAITERS_MAX; i++)
	{
		PGPROC	   *proc = &ProcGlobal->allProcs[i];
		LOCK	   *lock = *(LOCK *volatile *) &proc->waitLock;
		uint64		word = pg_atomic_read_u64(governor_word_at(i));
		bool		has_slot = governor_word_state(word) == GOVERNOR_RUNNING;

		if (lock == NULL || has_slot != with_slot)
			continue;
		waiters[waiter_count++] = (LockWaiter)
		{
			.process = i, .lock = lock, .mode = *(volatile LOCKMODE *) &proc->waitLockMode,
				.gate = has_slot ? governor_word_gate(word) : GOVERNOR_NOBODY
		};
	}
}

/*
 * Marks who has a slot of the gate (or any), then whom those wait for among the waiters, and
 * so on.  A waiter for the same lock counts, since it may be in front.  Returns how
 * many with a slot of the gate wait.
 */
static int
mark_waiters(int gate)
{
	int			with_slot = 0;
	bool		changed = true;

	for (int i = 0; i < waiter_count; i++)
	{
		waiters[i].stops_slot = waiters[i].is_recovery || waiters[i].gate == gate ||
			(gate == ANY_GATE && waiters[i].gate != GOVERNOR_NOBODY);
		with_slot += waiters[i].stops_slot;
	}
	while (with_slot > 0 && changed)
	{
		changed = false;
		for (int i = 0; i < waiter_count; i++)
		{
			LockWaiter *waiter = &waiters[i];

			if (waiter->stops_slot)
				continue;
			for (int j = 0; j < waiter_count && !waiter->stops_slot; j++)
				waiter->stops_slot = waiters[j].stops_slot && waiters[j].lock == waiter->lock;
			if (!waiter->stops_slot)
				waiter->stops_slot = holds_what_is_waited_for(waiter->process, true);
			changed = changed || waiter->stops_slot;
		}
	}
	return with_slot;
}

/*
 * Whether the process holds a lock that a waiter (a marked one) wants in a mode that
 * conflicts.  Locks taken by the fast path are not in its lists, but whoever has to
 * wait for one moves it there first.
 */
static bool
holds_what_is_waited_for(int process, bool by_marked)
{
	PGPROC	   *proc = &ProcGlobal->allProcs[process];
	bool		found = false;

	for (int i = 0; i < NUM_LOCK_PARTITIONS && !found; i++)
	{
		PROCLOCK   *entry;

		if (governor_proc_locks_empty(proc, i))
			continue;
		LWLockAcquire(LockHashPartitionLockByIndex(i), LW_SHARED);
		governor_foreach_proc_lock(proc, i, entry)
		{
			for (int j = 0; j < waiter_count && !found; j++)
			{
				if (waiters[j].lock != entry->tag.myLock || waiters[j].process == process ||
					(by_marked && !waiters[j].stops_slot))
					continue;
				for (LOCKMODE mode = 1; mode <= MaxLockMode; mode++)
					found = found || ((entry->holdMask & LOCKBIT_ON(mode)) != 0 &&
									  DoLockModesConflict(mode, waiters[j].mode));
			}
		}
		LWLockRelease(LockHashPartitionLockByIndex(i));
	}
	return found;
}

/*
 * Whether somebody waits for a lock of this process, in whichever queue: its lists and the
 * locks in them say so.
 */
bool
governor_block_keeps_others(void)
{
	bool		found = false;

	for (int i = 0; i < NUM_LOCK_PARTITIONS && !found; i++)
	{
		PROCLOCK   *entry;

		if (governor_proc_locks_empty(MyProc, i))
			continue;
		LWLockAcquire(LockHashPartitionLockByIndex(i), LW_SHARED);
		governor_foreach_proc_lock(MyProc, i, entry)
		{
			for (LOCKMODE mine = 1; mine <= MaxLockMode; mine++)
				for (LOCKMODE wanted = 1; wanted <= MaxLockMode; wanted++)
					found = found || ((entry->holdMask & LOCKBIT_ON(mine)) != 0 &&
									  (entry->tag.myLock->waitMask & LOCKBIT_ON(wanted)) != 0 &&
									  DoLockModesConflict(mine, wanted));
		}
		LWLockRelease(LockHashPartitionLockByIndex(i));
	}
	return found;
}

/* Gate after gate, and in each the oldest first. */
static void
let_in(int *room_of_others)
{
	bool		strict = pg_atomic_read_u32(&governor->strict) != 0;
	int			gate = GOVERNOR_NOBODY;
	int			room = 0;

	if (strict)
		room = mark_waiters(ANY_GATE) - count_let_in();
	for (int i = 0; i < blocker_count; i++)
	{
		Blocker    *blocker = &blockers[i];
		GovernorSession *session = governor_session_at(blocker->session);
		bool		stops_slot;
		bool		blocks;
		uint64		held_back;

		if (blocker->gate != gate)
		{
			gate = blocker->gate;
			if (!strict)
				room = mark_waiters(gate) == 0 ? 0 :
					Max(1, (int) pg_atomic_read_u32(&governor_gate_at(gate)->limit));
		}
		stops_slot = room > 0 && holds_what_is_waited_for(blocker->session, true);
		blocks = stops_slot || holds_what_is_waited_for(blocker->session, false);
		if (session->blocks_others != blocks)
			session->blocks_others = blocks;
		if (!blocks || (stops_slot ? room : *room_of_others) <= 0 ||
			!governor_gate_run_anyway(blocker->session, GOVERNOR_BY_BLOCKING))
			continue;
		if (stops_slot)
			room--;
		else
			(*room_of_others)--;
		if (governor_news_due(GOVERNOR_NEWS_BLOCKING, &held_back))
			ereport(LOG,
					(errmsg("pg_governor: let process %d in from the queue of class \"%s\" in pool \"%s\", since others wait for its locks",
							session->pid, governor_class_names[governor_class_of_gate(gate)],
							governor_pool_of_gate(gate)->name),
					 governor_news_detail(held_back)));
	}
}

/* How many still run that were let in for their locks. */
static int
count_let_in(void)
{
	int			count = 0;

	for (int i = 0; i < governor->session_count; i++)
	{
		uint64		word = pg_atomic_read_u64(governor_word_at(i));

		count += governor_word_state(word) == GOVERNOR_RUNNING && (word & GOVERNOR_BLOCKER) != 0;
	}
	return count;
}

static int
compare(const void *a, const void *b)
{
	const Blocker *left = a;
	const Blocker *right = b;

	if (left->gate != right->gate)
		return left->gate < right->gate ? -1 : 1;
	return left->since < right->since ? -1 : left->since > right->since;
}
