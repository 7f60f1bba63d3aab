/*
 * look.c
 *		Looks at every session that runs or queues; settle.c draws the conclusions.
 *
 *	- A session that has a slot and works without the CPU for longer than
 *	  discount_time (its client thinks, it sleeps, it waits for a remote server) is
 *	  discounted.  One that waits for a synchronous standby is at once, one that
 *	  waits for a lock after five times as long: shorter lock waits are what a limit
 *	  is for.
 *	- A transaction that has worked for long_time is long.  Work is what looks have
 *	  seen of it on the CPU or in a short wait; thinking and waiting for locks is
 *	  none.  With long_elapsed_time time alone is enough.
 *	- A warm session that stays away loses its slot.
 *	- A session with a slot is idle in its transaction if pg_stat_activity says so: a
 *	  wait for the client may also be one inside of a COPY.  With idle_holder_timeout it
 *	  is ended while somebody waits at its gate.
 *
 * It reads the wait events of other processes without locks: a wrong look is
 * corrected by the next one.  A session's gate comes from the word that says its
 * state, in one reading.
 */
#include "compat.h"

#include "storage/lwlock.h"
#include "utils/backend_status.h"
#include "utils/memutils.h"

#include "block.h"
#include "clock.h"
#include "delay.h"
#include "gate.h"
#include "look.h"
#include "sample.h"
#include "settings.h"
#include "settle.h"
#include "share.h"
#include "slot.h"
#include "word.h"

/* A warm session that has not come back after this loses its slot. */
#define WARM_KEPT_US 20000

/* A client that sends nothing for this long is idle, and not only slow. */
#define IDLE_FROM_US 100000

/* Two looks that are further apart say nothing about the time between them. */
#define LOOK_COUNTED_US 50000

/* Where most of those who work were let in a shorter time ago, transactions are short. */
#define YOUNG_US 50000

/* What the last look saw of a session. */
typedef struct Sighting
{
	uint32		wait_event_info;
	uint32		statements;
	int64		since;			/* of this wait and statement */
	uint32		admitted;		/* which of its transactions it was: its word's generation */
	int64		worked_us;		/* of that transaction */
	TimestampTz idle_from;		/* which time of idling it was */
	int64		idle_since;		/* when it was first seen; 0 = does not idle */
} Sighting;

static Sighting *sightings;
static GovernorGateLook *looks;
static int64 last_look;
static int64 this_look;

static void look_at_sessions(int what);
static void look_at_runner(int index, uint64 word);
static bool is_long(int gate, int64 worked_us, int64 elapsed_us);
static void look_at_idle(int index, GovernorGateLook *seen);
static bool is_idle_in_transaction(const GovernorSession *session, TimestampTz *from);
static void end_idle(void);
static void take_back_if_cold(int index, uint64 word);
static void look_at_waiter(int index, uint64 word);
static int	count_workers(PGPROC *leader);

void
governor_look_start(void)
{
	int			gates = governor->pool_max * GOVERNOR_CLASSES;

	sightings = MemoryContextAllocZero(TopMemoryContext,
									   governor->session_count * sizeof(Sighting));
	looks = MemoryContextAllocZero(TopMemoryContext, gates * sizeof(GovernorGateLook));
	governor_settle_start();
	governor_block_start();
}

GovernorLookAgain
governor_look(int what)
{
	GovernorLookAgain again = GOVERNOR_LOOK_WHEN_WOKEN;

	if (governor_gate_anyone_queued())
		again = GOVERNOR_LOOK_SOON;
	else if (governor_settle_is_wider())
		again = GOVERNOR_LOOK_SLOWLY;
	this_look = governor_now_us();
	memset(looks, 0, governor_gate_count() * sizeof(GovernorGateLook));
	if (again != GOVERNOR_LOOK_WHEN_WOKEN || (what & GOVERNOR_LOOK_SAMPLE))
		look_at_sessions(what);
	if (governor_idle_holder_timeout_ms > 0)
		end_idle();
	if (what & GOVERNOR_LOOK_SAMPLE)
		governor_sample(looks);
	if (again != GOVERNOR_LOOK_WHEN_WOKEN && (what & GOVERNOR_LOOK_AT_LOCKS))
		governor_block_look();
	governor_settle(looks, this_look);
	last_look = this_look;
	return again;
}

static void
look_at_sessions(int what)
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
		{
			if (what & GOVERNOR_LOOK_SAMPLE)
				governor_sample_ungated(i);
			continue;
		}
		switch (governor_word_state(word))
		{
			case GOVERNOR_RUNNING:
				look_at_runner(i, word);
				break;
			case GOVERNOR_WARM:
				take_back_if_cold(i, word);
				break;
			case GOVERNOR_QUEUED:
				look_at_waiter(i, word);
				break;
			default:
				break;
		}
	}
}

static void
look_at_runner(int index, uint64 word)
{
	GovernorSession *session = governor_session_at(index);
	Sighting   *last = &sightings[index];
	int			gate = governor_word_gate(word);
	GovernorGateLook *seen = &looks[gate];
	PGPROC	   *proc = &ProcGlobal->allProcs[index];
	uint32		wait = *(volatile uint32 *) &proc->wait_event_info;
	uint32		statements = session->statements;
	int64		since = session->since;
	GovernorWaitKind kind = governor_wait_kind(wait);
	bool		discounted;
	bool		long_one;

	if (wait != last->wait_event_info || statements != last->statements)
	{
		last->wait_event_info = wait;
		last->statements = statements;
		last->since = this_look;
	}
	if (governor_word_generation(word) != last->admitted)
	{
		last->admitted = governor_word_generation(word);
		last->worked_us = 0;
	}
	else if (kind == GOVERNOR_WAIT_NOT || kind == GOVERNOR_WAIT_FLUSH)
		last->worked_us += Min(this_look - last_look, LOOK_COUNTED_US);
	seen->kinds[kind]++;
	discounted = governor_wait_is_discounted(kind, this_look - last->since);
	if (session->discounted != discounted)
		session->discounted = discounted;
	long_one = is_long(gate, last->worked_us, this_look - since);
	if (long_one && !session->is_long)
		governor_settle_found_long(gate);
	if (session->is_long != long_one)
		session->is_long = long_one;
	if (governor_parallel_weight > 0 && *(PGPROC *volatile *) &proc->lockGroupLeader == proc)
		seen->workers += count_workers(proc);
	if (wait == GOVERNOR_IDLE_WAIT)
		look_at_idle(index, seen);
	else
		last->idle_since = 0;
	if (discounted)
	{
		seen->discounted++;
		if (word & GOVERNOR_ROLED)
			seen->role_discounted[governor_word_role(word)]++;
		return;
	}
	seen->counted++;
	seen->young += this_look - since < YOUNG_US;
	if (long_one)
		seen->long_ones++;
	else if (kind == GOVERNOR_WAIT_FLUSH)
		seen->flushing++;
	else if (this_look - since > governor_stall_time_ms * US_PER_MS)
		seen->stalled++;
}

/* Of big queries it is known from the beginning, and their limit is for just that. */
static bool
is_long(int gate, int64 worked_us, int64 elapsed_us)
{
	if (governor_class_of_gate(gate) == GOVERNOR_BIG_QUERY)
		return false;
	return (governor_long_time_ms > 0 && worked_us >= governor_long_time_ms * US_PER_MS) ||
		(governor_long_elapsed_time_ms > 0 && elapsed_us >= governor_long_elapsed_time_ms * US_PER_MS);
}

/*
 * It has a slot, and waits for its client.  Where two looks see the same beginning, it was
 * idle between them too, however far they are apart.
 */
static void
look_at_idle(int index, GovernorGateLook *seen)
{
	Sighting   *last = &sightings[index];
	TimestampTz from;

	if (!is_idle_in_transaction(governor_session_at(index), &from))
	{
		last->idle_since = 0;
		return;
	}
	if (last->idle_since == 0 || from != last->idle_from)
	{
		last->idle_from = from;
		last->idle_since = this_look;
	}
	if (this_look - last->idle_since < IDLE_FROM_US)
		return;
	if (seen->idle < GOVERNOR_IDLE_NAMED)
		seen->idle_pids[seen->idle] = governor_session_at(index)->pid;
	seen->idle++;
}

/* What pg_stat_activity says, and since when; false too where track_activities is off. */
static bool
is_idle_in_transaction(const GovernorSession *session, TimestampTz *from)
{
	volatile	PgBackendStatus *status = session->status;
	int			before;
	int			after;
	bool		idle;

	if (status == NULL)
		return false;
	pgstat_begin_read_activity(status, before);
	idle = status->st_procpid == session->pid && status->st_state == STATE_IDLEINTRANSACTION;
	*from = status->st_state_start_timestamp;
	pgstat_end_read_activity(status, after);
	/* One that changes its state at this moment is not idle. */
	return idle && pgstat_read_activity_complete(before, after);
}

/* Those are ended that keep somebody out: at their gate, or anywhere with a total limit. */
static void
end_idle(void)
{
	bool		anywhere = false;

	if (governor_share_is_limited())
		for (int gate = 0; gate < governor_gate_count(); gate++)
			anywhere = anywhere || looks[gate].waiting > 0;
	for (int i = 0; i < governor->session_count; i++)
	{
		uint64		word = pg_atomic_read_u64(governor_word_at(i));
		int			gate = governor_word_gate(word);
		GovernorSession *session = governor_session_at(i);
		TimestampTz from;

		if (governor_word_state(word) != GOVERNOR_RUNNING || gate < 0 || gate >= governor_gate_count() ||
			governor_gate_is_observed(gate) ||
			(!anywhere && looks[gate].waiting == 0) || sightings[i].idle_since == 0 ||
			this_look - sightings[i].idle_since < governor_idle_holder_timeout_ms * US_PER_MS)
			continue;
		/* It may have begun to work since it was looked at. */
		if (is_idle_in_transaction(session, &from) && from == sightings[i].idle_from)
			governor_settle_end_idle(session->pid, this_look - sightings[i].idle_since);
	}
}

static void
take_back_if_cold(int index, uint64 word)
{
	if (this_look - (int64) governor_session_at(index)->since >= WARM_KEPT_US &&
		(governor_share_is_limited() ||
		 governor_gate_occupancy(governor_gate_at(governor_word_gate(word))).queued > 0))
		governor_slot_take_back(index, word);
}

static void
look_at_waiter(int index, uint64 word)
{
	if (word & GOVERNOR_OBSERVED)
	{
		uint32		wait = *(volatile uint32 *) &ProcGlobal->allProcs[index].wait_event_info;

		looks[governor_word_gate(word)].kinds[governor_wait_kind(wait)]++;
	}
	/* It began to wait before the mode was changed. */
	else if (governor_gate_is_observed(governor_word_gate(word)))
		governor_gate_run_anyway(index, GOVERNOR_OPENED);
	else
		looks[governor_word_gate(word)].waiting++;
}

/* Workers have no slot: the gate of this session, which leads them, has so many fewer. */
static int
count_workers(PGPROC *leader)
{
	LWLock	   *lock = LockHashPartitionLockByProc(leader);
	dlist_iter	iter;
	int			count = 0;

	LWLockAcquire(lock, LW_SHARED);
	dlist_foreach(iter, &leader->lockGroupMembers)
	{
		PGPROC	   *member = dlist_container(PGPROC, lockGroupLink, iter.cur);

		count += member != leader &&
			governor_wait_kind(*(volatile uint32 *) &member->wait_event_info) == GOVERNOR_WAIT_NOT;
	}
	LWLockRelease(lock);
	return count;
}
