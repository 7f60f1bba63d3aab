/*
 * culprit.c
 *		Finds, for each gate with a queue or with more sessions than its limit, which sessions keep its slots: those that have one
 *		themselves, and those for whose locks others with a slot wait.
 *
 * A wait for a lock is followed to its roots, the sessions that wait for no lock themselves.  One that waits for several counts
 * for each of them in part: the end of one alone does not end the wait.  What a
 * session keeps, times the time for which it does, are its slot-seconds, which ledger.c
 * adds up by role, application and query.
 *
 * One that is a culprit (blame.c) is cancelled, or only named, by cancel_culprit.  Never is
 *	- a superuser, a reserved or an exempt role: by the standing that the session has found itself;
 *	- who has no slot: a session outside of gated transactions, autovacuum, a walsender, a worker;
 *	- whom a cancel does not reach, or what it would not help: who waits for its client, since a cancel
 *	  does nothing there (idle_holder_timeout ends it); who flushes its commit or waits for a standby, since it ends by itself; and
 *	  a transaction that was cancelled already.
 */
#include "compat.h"

#include "utils/array.h"
#include "utils/backend_status.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"

#include "cancel.h"
#include "clock.h"
#include "culprit.h"
#include "gate.h"
#include "ledger.h"
#include "settings.h"
#include "waitkind.h"
#include "word.h"

/* Of those who wait for locks at a gate so many are followed at each look; the others count as they do. */
#define FOLLOWED_MAX 16

#define DEPTH_MAX 8

/* Of those who hold one lock so many are followed, and so many questions are asked at each gate. */
#define HOLDERS_MAX 64
#define CALLS_MAX 100

/* Two looks that are further apart do not belong together. */
#define BREAK_US (4 * GOVERNOR_CULPRIT_LOOK_MS * US_PER_MS)

/* What the last looks have seen of a session. */
typedef struct Suspect
{
	uint64		word;			/* of which transaction */
	int64		seen_at;
	int64		culprit_since;	/* 0: it is none */
	/* by this look: the gate of whose slots it keeps the largest share */
	int			gate;
	GovernorBlame blame;
} Suspect;

static Suspect *suspects;
static double *kept;			/* by each session, at the gate that is looked at */
static int	calls_left;
static MemoryContext look_context;
static int64 this_look;
static int64 last_look;

static bool is_overfull(int gate);
static void look_at_gate(int gate);
static int	find_lock_waiters(int gate, int *waiters, uint32 *taken, uint32 *queued);
static void follow(int session, double weight, int depth);
static int	session_of(int pid);
static bool waits_for_lock(int session);
static void judge(int session);
static GovernorCulpritVerdict verdict_of(int session, uint64 word, const GovernorBlame *blame);
static void describe(int session, GovernorCulprit *culprit);

void
governor_culprit_start(void)
{
	suspects = MemoryContextAllocZero(TopMemoryContext, governor->session_count * sizeof(Suspect));
	kept = MemoryContextAllocZero(TopMemoryContext, governor->session_count * sizeof(double));
	look_context = AllocSetContextCreate(TopMemoryContext, "pg_governor culprits", ALLOCSET_DEFAULT_SIZES);
}

void
governor_culprit_look(int64 now)
{
	MemoryContext callers;

	if (governor_cancel_culprit == GOVERNOR_CULPRIT_OFF || pg_atomic_read_u32(&governor->observing) != 0 ||
		now - this_look < GOVERNOR_CULPRIT_LOOK_MS * US_PER_MS)
		return;
	last_look = this_look;
	this_look = now;
	callers = MemoryContextSwitchTo(look_context);
	for (int i = 0; i < governor->session_count; i++)
		suspects[i].blame.slots = 0;
	for (int gate = 0; gate < governor_gate_count(); gate++)
		if (!governor_gate_is_observed(gate) && is_overfull(gate))
			look_at_gate(gate);
	for (int i = 0; i < governor->session_count; i++)
		if (suspects[i].blame.slots > 0)
			judge(i);
	MemoryContextSwitchTo(callers);
	MemoryContextReset(look_context);
}

/* Somebody queues, or was let in beyond the limit, since those who wait for locks count no more after a while. */
static bool
is_overfull(int gate)
{
	GovernorOccupancy occupancy = governor_gate_occupancy(governor_gate_at(gate));
	uint32		limit = pg_atomic_read_u32(&governor_gate_at(gate)->limit);

	return limit > 0 && (occupancy.queued > 0 || occupancy.taken > limit);
}

static void
look_at_gate(int gate)
{
	uint32		limit = pg_atomic_read_u32(&governor_gate_at(gate)->limit);
	int			waiters[FOLLOWED_MAX];
	GovernorBlame blame = {0};
	int			waiting;

	memset(kept, 0, governor->session_count * sizeof(double));
	calls_left = CALLS_MAX;
	waiting = find_lock_waiters(gate, waiters, &blame.taken, &blame.waiters);
	blame.waiters += blame.taken > limit ? blame.taken - limit : 0;
	if (blame.waiters == 0)
		return;
	for (int i = 0; i < Min(waiting, FOLLOWED_MAX); i++)
		follow(waiters[i], (double) waiting / Min(waiting, FOLLOWED_MAX), 0);
	for (int i = 0; i < governor->session_count; i++)
	{
		Suspect    *suspect = &suspects[i];

		if (kept[i] == 0 || (suspect->blame.slots > 0 &&
							 kept[i] / Max(1, blame.taken) <= suspect->blame.slots / Max(1, suspect->blame.taken)))
			continue;
		suspect->gate = gate;
		suspect->blame = blame;
		suspect->blame.slots = kept[i];
	}
}

/* Who has a slot keeps it, unless it waits for a lock: then it is kept by somebody else. */
static int
find_lock_waiters(int gate, int *waiters, uint32 *taken, uint32 *queued)
{
	static uint32 turn = 0;
	int			count = 0;

	for (int i = 0; i < governor->session_count; i++)
	{
		uint64		word = pg_atomic_read_u64(governor_word_at(i));

		if (governor_word_gate(word) != gate)
			continue;
		if (governor_word_state(word) == GOVERNOR_QUEUED && !(word & GOVERNOR_OBSERVED))
			(*queued)++;
		if (governor_word_state(word) != GOVERNOR_RUNNING)
			continue;
		(*taken)++;
		if (!waits_for_lock(i))
			kept[i] += 1;
		else if (count++ < FOLLOWED_MAX)
			waiters[count - 1] = i;
		/* Of many it is a sample, so that each is among those who are followed now and then. */
		else if ((turn = turn * 1103515245 + 12345) % (uint32) count < FOLLOWED_MAX)
			waiters[turn / 65536 % FOLLOWED_MAX] = i;
	}
	return count;
}

/*
 * Those who are only in front of it in the queue of the same lock wait for the same holders, and are no holders
 * themselves: to follow each of them would take a time that doubles with each.
 */
static void
follow(int session, double weight, int depth)
{
	LOCK	   *lock = *(LOCK *volatile *) &ProcGlobal->allProcs[session].waitLock;
	int			holders[HOLDERS_MAX];
	int			count = 0;
	ArrayType  *pids;
	int32	   *blocking;

	if (calls_left-- <= 0)
		return;
	pids = DatumGetArrayTypeP(DirectFunctionCall1(pg_blocking_pids, Int32GetDatum(governor_session_at(session)->pid)));
	blocking = (int32 *) ARR_DATA_PTR(pids);
	for (int i = 0; i < ArrayGetNItems(ARR_NDIM(pids), ARR_DIMS(pids)) && count < HOLDERS_MAX; i++)
	{
		int			blocker = session_of(blocking[i]);

		/* A prepared transaction, or a process that is no session, takes its part and is not named. */
		if (blocker == session ||
			(blocker != GOVERNOR_NOBODY && waits_for_lock(blocker) &&
			 *(LOCK *volatile *) &ProcGlobal->allProcs[blocker].waitLock == lock))
			continue;
		holders[count++] = blocker;
	}
	for (int i = 0; i < count; i++)
	{
		if (holders[i] == GOVERNOR_NOBODY)
			continue;
		if (!waits_for_lock(holders[i]))
			kept[holders[i]] += weight / count;
		else if (depth < DEPTH_MAX)
			follow(holders[i], weight / count, depth + 1);
	}
}

static int
session_of(int pid)
{
	for (int i = 0; pid > 0 && i < governor->session_count; i++)
		if (governor_session_at(i)->pid == pid)
			return i;
	return GOVERNOR_NOBODY;
}

static bool
waits_for_lock(int session)
{
	uint32		wait = *(volatile uint32 *) &ProcGlobal->allProcs[session].wait_event_info;

	return governor_wait_kind(wait) == GOVERNOR_WAIT_LOCK;
}

/* Only what two looks have seen counts: short transactions come and go in between. */
static void
judge(int session)
{
	Suspect    *suspect = &suspects[session];
	GovernorBlame blame = suspect->blame;
	uint64		word = pg_atomic_read_u64(governor_word_at(session));
	bool		again = suspect->word == word && this_look - suspect->seen_at <= BREAK_US;
	GovernorCulprit culprit = {0};

	if (!again || !governor_culprit_is(blame, 0))
		suspect->culprit_since = 0;
	else if (suspect->culprit_since == 0)
		suspect->culprit_since = suspect->seen_at;
	suspect->word = word;
	suspect->seen_at = this_look;
	if (!again)
		return;
	if (suspect->culprit_since != 0)
		blame.for_us = this_look - suspect->culprit_since;
	describe(session, &culprit);
	culprit.gate = suspect->gate;
	culprit.slots = blame.slots;
	culprit.verdict = verdict_of(session, word, &blame);
	if (culprit.verdict == GOVERNOR_VERDICT_CANCELLED)
	{
		if (governor_cancel_culprit == GOVERNOR_CULPRIT_OBSERVE)
			culprit.verdict = GOVERNOR_VERDICT_NAMED;
		else if (!governor_cancel_send(session, word, (uint32) blame.slots, blame.waiters))
			culprit.verdict = GOVERNOR_VERDICT_ENDS;
	}
	governor_ledger_add(&culprit, &blame, word, this_look - last_look);
}

static GovernorCulpritVerdict
verdict_of(int session, uint64 word, const GovernorBlame *blame)
{
	uint32		wait = *(volatile uint32 *) &ProcGlobal->allProcs[session].wait_event_info;
	GovernorWaitKind kind = governor_wait_kind(wait);

	if (governor_word_state(word) != GOVERNOR_RUNNING)
		return GOVERNOR_VERDICT_NOT_GATED;
	if (!governor_session_at(session)->may_be_cancelled)
		return GOVERNOR_VERDICT_PRIVILEGED;
	if (governor_cancel_is_asked(governor_session_at(session)))
		return GOVERNOR_VERDICT_CANCELLED_BEFORE;
	if ((wait & 0xFF000000) == PG_WAIT_CLIENT)
		return GOVERNOR_VERDICT_CLIENT;
	if (kind == GOVERNOR_WAIT_FLUSH || kind == GOVERNOR_WAIT_STANDBY)
		return GOVERNOR_VERDICT_ENDS;
	return governor_culprit_is(*blame, governor_culprit_time_ms * US_PER_MS) ?
		GOVERNOR_VERDICT_CANCELLED : GOVERNOR_VERDICT_WATCHED;
}

/* Who it is, as pg_stat_activity shows it. */
static void
describe(int session, GovernorCulprit *culprit)
{
	volatile	PgBackendStatus *status = governor_session_at(session)->status;
	int			before = 0;
	int			after = 0;

	culprit->pid = governor_session_at(session)->pid;
	for (int tries = 0; status != NULL && tries < 10; tries++)
	{
		pgstat_begin_read_activity(status, before);
		culprit->role = status->st_userid;
		culprit->query_id = (int64) status->st_query_id;
		strlcpy(culprit->application, (const char *) status->st_appname, NAMEDATALEN);
		pgstat_end_read_activity(status, after);
		if (pgstat_read_activity_complete(before, after))
			break;
	}
}
