/*
 * look.c
 *		Looks at every session that runs or queues, and sets how many slots each
 *		gate has now.
 *
 * For each gate the capacity is its limit, and beyond it, up to the hard maximum:
 *	- Discount: a session that has a slot and works without the CPU for longer
 *	  than discount_time (its client thinks, it sleeps, it waits for a remote
 *	  server) does not count against the limit.  One that waits for a
 *	  synchronous standby does not count at once.  One that waits for a lock does
 *	  not count after stall_time: shorter lock waits are what a limit is for.
 *	- WAL sync: sessions in the flush of their commit do not count, on average
 *	  over some looks, and no more of them than the limit.
 *	- Stall: no slot was released for stall_time; one more is let in, and the
 *	  capacity stays higher while those that were there then still run.
 *
 * Two more rules move single sessions:
 *	- Demotion: what has worked for long_time is counted in class long from then
 *	  on, and its slot goes to the next waiter.
 *	- Blocking: somebody waits for a lock of a session that queues.  It is let in,
 *	  also beyond the hard maximum, since its slot might come from just the one
 *	  that waits for it, a deadlock that PostgreSQL cannot see.
 *
 * It reads the wait events and the lists of locks of other processes without
 * their locks: a wrong look is corrected by the next one.  A session's gate comes
 * from the word that says its state, in one reading.
 */
#include "compat.h"

#include "storage/lwlock.h"
#include "utils/memutils.h"

#include "clock.h"
#include "delay.h"
#include "gate.h"
#include "look.h"
#include "news.h"
#include "settings.h"
#include "share.h"
#include "slot.h"
#include "waitkind.h"
#include "word.h"

/* A warm session that has not come back after this loses its slot. */
#define WARM_KEPT_US 20000

/* What the last look saw of a session. */
typedef struct Sighting
{
	uint32		wait_event_info;
	uint32		statements;
	int64		since;
} Sighting;

/* What this look has found out about a gate. */
typedef struct GateLook
{
	uint32		discounted;
	uint32		flushing;
	uint32		long_running;	/* not discounted, and let in before stall_time */
	uint32		kinds[GOVERNOR_WAIT_KINDS];
} GateLook;

/* What is remembered of a gate from look to look. */
typedef struct GateWatch
{
	double		flushing_average;
	uint64		progress;
	int64		progress_at;
	uint32		stall_credit;
} GateWatch;

static Sighting *sightings;
static GateLook *looks;
static GateWatch *watches;
static uint32 total_discounted;
static uint64 sampled_since_reset;

static GateLook *look_of(int gate);
static void look_at_sessions(int64 now, int what);
static void look_at_runner(int index, uint64 word, int64 now);
static void take_back_if_cold(int index, uint64 word, int64 now);
static void look_at_waiter(int index, uint64 word, int what);
static bool blocks_somebody(PGPROC *proc);
static void settle_gate(int gate, int64 now);
static void stall_rule(int gate, int64 now);
static void settle_total(void);
static void sample(void);
static bool has_stall_rule(int gate);

void
governor_look_start(void)
{
	int			gates = governor->pool_max * GOVERNOR_CLASSES;

	sightings = MemoryContextAllocZero(TopMemoryContext,
									   governor->session_count * sizeof(Sighting));
	looks = MemoryContextAllocZero(TopMemoryContext, gates * sizeof(GateLook));
	watches = MemoryContextAllocZero(TopMemoryContext, gates * sizeof(GateWatch));
}

GovernorLookAgain
governor_look(int what)
{
	int			gates = governor_gate_count();
	int64		now = governor_now_us();
	GovernorLookAgain again = GOVERNOR_LOOK_WHEN_WOKEN;
	bool		credit = false;

	for (int gate = 0; gate < gates; gate++)
		credit = credit || watches[gate].stall_credit > 0;
	if (governor_gate_anyone_queued())
		again = GOVERNOR_LOOK_SOON;
	else if (credit)
		again = GOVERNOR_LOOK_SLOWLY;

	memset(looks, 0, gates * sizeof(GateLook));
	total_discounted = 0;
	if (again != GOVERNOR_LOOK_WHEN_WOKEN || (what & GOVERNOR_LOOK_SAMPLE))
		look_at_sessions(now, what);
	if (what & GOVERNOR_LOOK_SAMPLE)
		sample();
	settle_total();
	for (int gate = 0; gate < gates; gate++)
		settle_gate(gate, now);
	return again;
}

static GateLook *
look_of(int gate)
{
	Assert(gate >= 0 && gate < governor->pool_max * GOVERNOR_CLASSES);
	return &looks[gate];
}

static void
look_at_sessions(int64 now, int what)
{
	int			gates = governor_gate_count();

	for (int i = 0; i < governor->session_count; i++)
	{
		uint64		word = pg_atomic_read_u64(governor_word_at(i));
		int			gate = governor_word_gate(word);

		/* What the session wrote before its word is read after it. */
		pg_read_barrier();
		GOVERNOR_DELAY();
		if (gate < 0 || gate >= gates)
			continue;
		switch (governor_word_state(word))
		{
			case GOVERNOR_RUNNING:
				look_at_runner(i, word, now);
				break;
			case GOVERNOR_WARM:
				take_back_if_cold(i, word, now);
				break;
			case GOVERNOR_QUEUED:
				look_at_waiter(i, word, what);
				break;
			default:
				break;
		}
	}
}

static void
look_at_runner(int index, uint64 word, int64 now)
{
	GovernorSession *session = governor_session_at(index);
	Sighting   *last = &sightings[index];
	int			gate = governor_word_gate(word);
	GateLook   *seen = look_of(gate);
	uint32		wait = *(volatile uint32 *) &ProcGlobal->allProcs[index].wait_event_info;
	uint32		statements = session->statements;
	int64		runs_us = now - (int64) session->since;
	GovernorWaitKind kind = governor_wait_kind(wait);
	bool		discounted;

	if (wait != last->wait_event_info || statements != last->statements)
	{
		last->wait_event_info = wait;
		last->statements = statements;
		last->since = now;
	}
	seen->kinds[kind]++;
	discounted = governor_wait_is_discounted(kind, now - last->since);
	if (session->discounted != discounted)
		session->discounted = discounted;
	if (!discounted && kind == GOVERNOR_WAIT_NOT && governor_long_time_ms > 0 &&
		runs_us > governor_long_time_ms * US_PER_MS && has_stall_rule(gate) &&
		governor_gate_occupancy(governor_gate_at(gate)).queued > 0 &&
		governor_slot_demote(index, word))
		return;
	if (discounted)
	{
		seen->discounted++;
		total_discounted += (word & GOVERNOR_COUNTED) != 0;
	}
	else if (kind == GOVERNOR_WAIT_FLUSH)
		seen->flushing++;
	else if (runs_us > governor_stall_time_ms * US_PER_MS)
		seen->long_running++;
}

static void
take_back_if_cold(int index, uint64 word, int64 now)
{
	if (now - (int64) governor_session_at(index)->since >= WARM_KEPT_US &&
		(governor_share_is_limited() ||
		 governor_gate_occupancy(governor_gate_at(governor_word_gate(word))).queued > 0))
		governor_slot_take_back(index, word);
}

static void
look_at_waiter(int index, uint64 word, int what)
{
	GovernorSession *session = governor_session_at(index);
	int			gate = governor_word_gate(word);
	uint64		held_back;
	bool		blocks;

	if (word & GOVERNOR_OBSERVED)
	{
		uint32		wait = *(volatile uint32 *) &ProcGlobal->allProcs[index].wait_event_info;

		look_of(gate)->kinds[governor_wait_kind(wait)]++;
		return;
	}
	/* It began to wait before the mode was changed. */
	if (pg_atomic_read_u32(&governor->observing) != 0)
	{
		governor_gate_run_anyway(index, GOVERNOR_OPENED);
		return;
	}
	/* Thousands wait at BEGIN with no lock at all: only their words are read. */
	if (!(what & GOVERNOR_LOOK_AT_LOCKS) || !(word & GOVERNOR_HOLDING))
		return;
	blocks = blocks_somebody(&ProcGlobal->allProcs[index]);
	if (session->blocks_others != blocks)
		session->blocks_others = blocks;
	if (blocks && governor_gate_run_anyway(index, GOVERNOR_BY_BLOCKING) &&
		governor_news_due(GOVERNOR_NEWS_BLOCKING, &held_back))
		ereport(LOG,
				(errmsg("pg_governor: let process %d in from the queue of class \"%s\" in pool \"%s\", since others wait for its locks",
						session->pid, governor_class_names[governor_class_of_gate(gate)],
						governor_pool_of_gate(gate)->name),
				 governor_news_detail(held_back)));
}

/*
 * Whether somebody waits for a lock that this process holds.  Locks taken by
 * the fast path are not in its lists, but whoever has to wait for one moves it
 * there first.
 */
static bool
blocks_somebody(PGPROC *proc)
{
	bool		found = false;

	for (int i = 0; i < NUM_LOCK_PARTITIONS && !found; i++)
	{
		PROCLOCK   *entry;

		if (governor_proc_locks_empty(proc, i))
			continue;
		LWLockAcquire(LockHashPartitionLockByIndex(i), LW_SHARED);
		governor_foreach_proc_lock(proc, i, entry)
		{
			LOCK	   *lock = entry->tag.myLock;

			if (entry->holdMask != 0 && lock->nRequested > lock->nGranted)
				found = true;
		}
		LWLockRelease(LockHashPartitionLockByIndex(i));
	}
	return found;
}

/* Sets how many slots there are now, and lets in as many as that allows. */
static void
settle_gate(int gate_index, int64 now)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	GateWatch  *watch = &watches[gate_index];
	GateLook   *seen = look_of(gate_index);
	uint32		limit = pg_atomic_read_u32(&gate->limit);
	uint32		hard_max = pg_atomic_read_u32(&gate->hard_max);
	GovernorOccupancy occupancy = governor_gate_occupancy(gate);
	uint32		flushing;
	uint32		capacity;
	uint64		held_back;

	watch->stall_credit = Min(watch->stall_credit, seen->long_running);
	if (limit == 0 || (occupancy.queued == 0 && watch->stall_credit == 0))
	{
		/* Nobody to let in: forget, so that the next queue starts afresh. */
		if (pg_atomic_read_u32(&gate->capacity) != limit)
			pg_atomic_write_u32(&gate->capacity, limit);
		memset(watch, 0, sizeof(*watch));
		if (limit == 0 && occupancy.queued > 0)
			governor_gate_admit_free(gate_index);
		return;
	}
	watch->flushing_average += (seen->flushing - watch->flushing_average) / 8;
	flushing = Min((uint32) watch->flushing_average, limit);
	capacity = limit + seen->discounted + flushing + watch->stall_credit;
	if (hard_max > 0 && capacity > hard_max)
	{
		capacity = hard_max;
		if (occupancy.taken >= hard_max && governor_news_due(GOVERNOR_NEWS_HARD_MAX, &held_back))
			ereport(LOG,
					(errmsg("pg_governor: class \"%s\" in pool \"%s\" is at its hard maximum of %u slots, and %u sessions queue",
							governor_class_names[governor_class_of_gate(gate_index)],
							governor_pool_of_gate(gate_index)->name, hard_max, occupancy.queued),
					 governor_news_detail(held_back),
					 errhint("Look at what the sessions with a slot wait for, in pg_stat_activity.")));
	}
	pg_atomic_write_u32(&gate->capacity, capacity);
	if (occupancy.queued == 0)
		return;
	governor_gate_admit_free(gate_index);
	if (has_stall_rule(gate_index))
		stall_rule(gate_index, now);
}

static void
stall_rule(int gate_index, int64 now)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	GateWatch  *watch = &watches[gate_index];
	uint64		progress = pg_atomic_read_u64(&gate->progress);
	uint64		held_back;

	if (watch->progress_at == 0 || progress != watch->progress)
	{
		watch->progress = progress;
		watch->progress_at = now;
		return;
	}
	if (governor_stall_time_ms == 0 ||
		now - watch->progress_at < governor_stall_time_ms * US_PER_MS ||
		!governor_gate_admit_head(gate_index, GOVERNOR_BY_STALL))
		return;
	LWLockAcquire(governor_gate_lock(gate_index), LW_EXCLUSIVE);
	gate->stats.stalls++;
	LWLockRelease(governor_gate_lock(gate_index));
	watch->stall_credit++;
	watch->progress_at = now;
	if (governor_news_due(GOVERNOR_NEWS_STALL, &held_back))
		ereport(LOG,
				(errmsg("pg_governor: no slot of class \"%s\" in pool \"%s\" was released for %d ms, so one more session was let in",
						governor_class_names[governor_class_of_gate(gate_index)],
						governor_pool_of_gate(gate_index)->name, governor_stall_time_ms),
				 governor_news_detail(held_back)));
}

/* Classes for work that takes long do not stall when nothing ends for a while. */
static bool
has_stall_rule(int gate)
{
	GovernorClass class = governor_class_of_gate(gate);

	return class != GOVERNOR_LONG && class != GOVERNOR_BIG_QUERY;
}

static void
settle_total(void)
{
	uint32		limit = pg_atomic_read_u32(&governor->total_limit);

	if (limit > 0)
		pg_atomic_write_u32(&governor->total_capacity,
							Min(limit + total_discounted,
								pg_atomic_read_u32(&governor->total_hard_max)));
}

/* Adds this look to what pg_governor_advice() judges by. */
static void
sample(void)
{
	uint64		reset = pg_atomic_read_u64(&governor->stats_reset);

	for (int i = 0; i < governor_gate_count(); i++)
	{
		GovernorSample *into = &governor_gate_at(i)->sample;
		const uint32 *kinds = look_of(i)->kinds;
		uint32		sessions = 0;

		if (reset != sampled_since_reset)
			memset(into, 0, sizeof(*into));
		for (int kind = 0; kind < GOVERNOR_WAIT_KINDS; kind++)
			sessions += kinds[kind];
		into->looks++;
		into->sessions += sessions;
		into->sessions_max = Max(into->sessions_max, sessions);
		into->on_cpu += kinds[GOVERNOR_WAIT_NOT];
		into->on_locks += kinds[GOVERNOR_WAIT_LOCK];
		into->on_flush += kinds[GOVERNOR_WAIT_FLUSH];
		into->outside += kinds[GOVERNOR_WAIT_OUTSIDE] + kinds[GOVERNOR_WAIT_STANDBY];
	}
	sampled_since_reset = reset;
}
