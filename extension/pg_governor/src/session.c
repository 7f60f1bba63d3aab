/*
 * session.c
 *		Decides once for each transaction of this session whether it needs a slot,
 *		and releases the slot when the transaction has ended.
 *
 * In doubt a transaction runs without a slot: processes that are not clients,
 * connections that come from a session of this same server, processes that are
 * ending, places where an interrupt could not be served.
 */
#include "compat.h"

#include "access/xact.h"
#include "replication/walsender.h"
#include "storage/ipc.h"
#include "utils/resowner.h"

#include "clock.h"
#include "gate.h"
#include "pool.h"
#include "session.h"
#include "settings.h"
#include "slot.h"
#include "standing.h"
#include "wait.h"
#include "warm.h"
#include "word.h"

int			governor_utility_depth = 0;
int			governor_planner_depth = 0;
int			governor_my_index = GOVERNOR_NOBODY;
GovernorSession *governor_my_session = NULL;

static bool decided = false;
static bool ended = false;
static LocalTransactionId seen_lxid = InvalidLocalTransactionId;
static LocalTransactionId chained_from = InvalidLocalTransactionId;
static GovernorStanding standing = GOVERNOR_UNKNOWN;
static int	identity_generation = 0;

static void transaction_ended(XactEvent event, void *arg);
static void locks_released(ResourceReleasePhase phase, bool is_commit, bool is_top_level, void *arg);
static void transaction_is_over(void);
static void session_exit(int code, Datum arg);
static void attach(void);
static void find_pool(void);
static void hand_in_counts(void);
static bool may_wait(void);
static int	gate_for(GovernorClass class);
static int	role_for(int gate);
static bool enter_at_once(int gate, int role);
static bool go_on_warm(int gate);
static bool take_reserved_slot(int gate);
static void count(pg_atomic_uint64 *counter);

/* Called by the postmaster; sessions inherit it. */
void
governor_session_start(void)
{
	RegisterXactCallback(transaction_ended, NULL);
	RegisterResourceReleaseCallback(locks_released, NULL);
}

/* Whether this transaction may still have to take a slot. */
bool
governor_session_undecided(void)
{
	if (decided || governor_utility_depth > 0 || governor_planner_depth > 0 ||
		MyBackendType != B_BACKEND || am_walsender)
		return false;
	if (chained_from != InvalidLocalTransactionId)
	{
		/* It is inside of a block that began without a slot, and may hold locks. */
		decided = governor_my_lxid() == chained_from + 1;
		chained_from = InvalidLocalTransactionId;
	}
	return !decided;
}

/* This transaction takes no slot any more, whatever comes. */
void
governor_session_bypass(void)
{
	decided = true;
}

/*
 * COMMIT or ROLLBACK AND CHAIN: the next transaction begins without BEGIN.  After
 * an error this one has no number any more, but it had one before.
 */
void
governor_session_chains(void)
{
	chained_from = seen_lxid;
}

/* Lets the monitor tell a session that works from one that waits, by its statements. */
void
governor_session_statement(void)
{
	if (governor_my_lxid() != InvalidLocalTransactionId)
		seen_lxid = governor_my_lxid();
	if (governor_my_session != NULL)
		governor_my_session->statements++;
}

/*
 * Takes a slot for this transaction, which may wait, or fail with an error.
 * Exactly one decision is made for each transaction: what began without a slot
 * may hold locks by now, and must not queue any more.
 */
void
governor_session_admit(GovernorClass class)
{
	int			gate;
	int			role;

	if (!governor_session_undecided())
		return;
	decided = true;
	if (governor == NULL || !may_wait())
		return;
	attach();
	if (standing == GOVERNOR_EXEMPT || governor_my_session->pool == GOVERNOR_NO_POOL)
		return;
	gate = gate_for(class);
	role = role_for(gate);
	if (enter_at_once(gate, role))
		return;
	if (governor_wait_for_slot(gate, role, class == GOVERNOR_TRANSACTION))
		count(&governor_my_session->admits_free[governor_class_of_gate(gate)]);
	governor_warm_turn_begins(gate);
}

static void
transaction_ended(XactEvent event, void *arg pg_attribute_unused())
{
	switch (event)
	{
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			break;
		default:
			return;
	}
	/* CALL with COMMIT, VACUUM: one slot, or none, for the whole statement */
	if (governor_utility_depth > 0)
		return;
	decided = false;
	ended = true;
}

/*
 * The slot is released after the transaction's locks: waking somebody takes
 * longer than all the rest, and rows that others wait for would be held for it.
 */
static void
locks_released(ResourceReleasePhase phase, bool is_commit pg_attribute_unused(),
			   bool is_top_level, void *arg pg_attribute_unused())
{
	if (phase != RESOURCE_RELEASE_AFTER_LOCKS || !is_top_level || !ended)
		return;
	ended = false;
	if (governor_my_session != NULL)
		transaction_is_over();
}

static void
transaction_is_over(void)
{
	uint64		word = pg_atomic_read_u64(governor_word_at(governor_my_index));
	int			gate = governor_word_gate(word);

	switch (governor_word_state(word))
	{
		case GOVERNOR_RUNNING:
			governor_warm_transaction_ends(gate);
			if (!(governor_word_flags(word) & GOVERNOR_OBSERVED) && governor_warm_stays(gate) &&
				governor_slot_keep_warm(governor_my_index))
				pg_atomic_fetch_add_u64(&governor_gate_at(gate)->progress, 1);
			else
				governor_slot_release(governor_my_index);
			break;
		case GOVERNOR_RESERVED:
			governor_slot_release(governor_my_index);
			break;
		case GOVERNOR_QUEUED:
		case GOVERNOR_ENTERING:
			/* One that really waits ends its wait itself, also by an error. */
			if (governor_word_flags(word) & GOVERNOR_OBSERVED)
				governor_slot_end(governor_my_index, GOVERNOR_LEAVE_OBSERVED);
			break;
		default:
			break;
	}
}

/* Runs after an open transaction was aborted, so that its locks are released. */
static void
session_exit(int code pg_attribute_unused(), Datum arg pg_attribute_unused())
{
	LWLockReleaseAll();
	governor_slot_end(governor_my_index, GOVERNOR_LEAVE_CANCELLED);
	hand_in_counts();
	governor_my_session->pool = GOVERNOR_NO_POOL;
	governor_my_session->pid = 0;
	governor_my_session = NULL;
}

/* Finds or renews what this session is; cheap when nothing has changed. */
static void
attach(void)
{
	int			index;

	if (standing != GOVERNOR_UNKNOWN && identity_generation == governor_identity_generation)
		return;
	identity_generation = governor_identity_generation;
	standing = governor_find_standing();
	index = governor_my_proc_number();
	if (index < 0 || index >= governor->session_count)
		standing = GOVERNOR_EXEMPT;
	if (governor_my_session == NULL)
	{
		if (standing == GOVERNOR_EXEMPT)
			return;
		governor_my_index = index;
		governor_my_session = governor_session_at(index);
		governor_my_session->pool = GOVERNOR_NO_POOL;
		governor_my_session->discounted = false;
		governor_my_session->blocks_others = false;
		governor_my_session->pid = MyProcPid;
		on_shmem_exit(session_exit, (Datum) 0);
		governor_wait_start();
	}
	if (standing != GOVERNOR_EXEMPT)
		find_pool();
}

static void
find_pool(void)
{
	hand_in_counts();
	governor_my_session->pool = governor_pool_find_or_add(governor_pool_name);
	governor_my_session->role = GOVERNOR_ROLE_ANY;
	if (governor_my_session->pool != GOVERNOR_NO_POOL)
		governor_my_session->role =
			governor_pool_role_find_or_add(governor_my_session->pool, GetAuthenticatedUserId());
}

/* What this session counted for its pool becomes the pool's own. */
static void
hand_in_counts(void)
{
	GovernorSession *self = governor_my_session;

	for (int class = 0; class < GOVERNOR_CLASSES; class++)
	{
		uint64		admits_free = pg_atomic_exchange_u64(&self->admits_free[class], 0);
		uint64		admits_again = pg_atomic_exchange_u64(&self->admits_again[class], 0);
		int			gate = self->pool * GOVERNOR_CLASSES + class;

		if (admits_free + admits_again == 0 || self->pool == GOVERNOR_NO_POOL)
			continue;
		LWLockAcquire(governor_gate_lock(gate), LW_EXCLUSIVE);
		governor_gate_at(gate)->stats.admits[GOVERNOR_FREE] += admits_free;
		governor_gate_at(gate)->stats.admits[GOVERNOR_AGAIN] += admits_again;
		LWLockRelease(governor_gate_lock(gate));
	}
	pg_atomic_write_u64(&self->waits, 0);
	pg_atomic_write_u64(&self->wait_us_total, 0);
	pg_atomic_write_u64(&self->wait_us_max, 0);
}

static bool
may_wait(void)
{
	return IsUnderPostmaster && !proc_exit_inprogress &&
		CritSectionCount == 0 && InterruptHoldoffCount == 0 && QueryCancelHoldoffCount == 0;
}

/*
 * A big query without a limit of its own counts as any query.  Who was long the
 * last time queues for class long, if its own class has a limit at all.
 */
static int
gate_for(GovernorClass class)
{
	int			first = governor_my_session->pool * GOVERNOR_CLASSES;

	if (class == GOVERNOR_BIG_QUERY &&
		pg_atomic_read_u32(&governor_gate_at(first + class)->limit) == 0)
		class = GOVERNOR_QUERY;
	if (class != GOVERNOR_BIG_QUERY && governor_warm_is_long() &&
		pg_atomic_read_u32(&governor_gate_at(first + class)->limit) > 0)
		class = GOVERNOR_LONG;
	return first + class;
}

static int
role_for(int gate)
{
	return pg_atomic_read_u32(&governor_gate_at(gate)->role_slots) > 0 ?
		governor_my_session->role : GOVERNOR_ROLE_ANY;
}

static bool
enter_at_once(int gate, int role)
{
	governor_warm_transaction_begins();
	if (go_on_warm(gate))
		return true;
	switch (governor_slot_take(governor_my_index, gate, role))
	{
		case GOVERNOR_OPEN:
			return true;
		case GOVERNOR_ENTERED:
			count(&governor_my_session->admits_free[governor_class_of_gate(gate)]);
			governor_warm_turn_begins(gate);
			return true;
		case GOVERNOR_FULL:
			break;
	}
	return take_reserved_slot(gate);
}

/* False: the session has no slot now, also if it had kept another gate's. */
static bool
go_on_warm(int gate)
{
	if (governor_slot_resume(governor_my_index) &&
		governor_word_gate(pg_atomic_read_u64(governor_word_at(governor_my_index))) == gate)
	{
		governor_warm_goes_on();
		count(&governor_my_session->admits_again[governor_class_of_gate(gate)]);
		return true;
	}
	governor_slot_release(governor_my_index);
	return false;
}

static bool
take_reserved_slot(int gate)
{
	if (standing != GOVERNOR_PRIVILEGED || governor_reserved_slots == 0 ||
		!governor_slot_take_reserved(governor_my_index, gate, governor_reserved_slots))
		return false;
	LWLockAcquire(governor_gate_lock(gate), LW_EXCLUSIVE);
	governor_gate_at(gate)->stats.admits[GOVERNOR_BY_RESERVE]++;
	LWLockRelease(governor_gate_lock(gate));
	return true;
}

/* Only this process raises it: a reset at the same moment may be lost. */
static void
count(pg_atomic_uint64 *counter)
{
	pg_atomic_write_u64(counter, pg_atomic_read_u64(counter) + 1);
}
