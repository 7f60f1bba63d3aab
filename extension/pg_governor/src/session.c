/*
 * session.c
 *		Decides once for each transaction of this session whether it needs a slot,
 *		and releases the slot when the transaction has ended.
 *
 * In doubt a transaction runs without a slot: processes that are not clients,
 * connections that come from a session of this same server (loopback.c), processes that are
 * ending, places where an interrupt could not be served.
 */
#include "compat.h"

#include "access/xact.h"
#include "replication/walsender.h"
#include "storage/ipc.h"
#include "utils/backend_status.h"
#include "utils/resowner.h"

#include "cancel.h"
#include "clock.h"
#include "doom.h"
#include "gate.h"
#include "loopback.h"
#include "pause.h"
#include "pool.h"
#include "session.h"
#include "settings.h"
#include "slot.h"
#include "snapshots.h"
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
static bool chained_by_commit = false;
/* this transaction is a block that began by AND CHAIN, or whose pool its first statement chooses, and is not decided yet */
static bool block_undecided = false;
static GovernorStanding standing = GOVERNOR_UNKNOWN;

/* What standing and pool were found by. */
static int	identity_generation = 0;
static uint32 pools_generation = 0;
static uint32 moved_to = 0;
static Oid	session_user = InvalidOid;

/* The pool that the session has without a rule, and whether an administrator has moved it there. */
static int	own_pool = GOVERNOR_NO_POOL;
static bool is_moved = false;

/* The statement that decides for its transaction, while it does, and what the rules say of it. */
static const GovernorStatement *deciding = NULL;
static GovernorChoice choice;

static bool first_statement_chooses(GovernorBeginning where, bool gated);
static void decide(GovernorClass class, GovernorBeginning where, bool gated, const GovernorStatement *statement);
static void pass_at_first_statement(const GovernorStatement *statement);
static void pass(GovernorClass class, GovernorBeginning where, bool gated, const GovernorStatement *statement);
static GovernorWaitEnd pass_once(GovernorClass class, GovernorBeginning where, bool gated, GovernorSnapshots *snapshots);
static void pass_at_begin(GovernorClass class, bool gated, const GovernorStatement *statement);
static void publish_busy(void);
static void transaction_ended(XactEvent event, void *arg);
static void locks_released(ResourceReleasePhase phase, bool is_commit, bool is_top_level, void *arg);
static void transaction_is_over(void);
static void session_exit(int code, Datum arg);
static bool is_known(void);
static bool find_pool(Oid user);
static void choose_pool(void);
static void enter_pool(int pool);
static void tell_of_unknown_pool(void);
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
		block_undecided = governor_my_lxid() == chained_from + 1;
		chained_from = InvalidLocalTransactionId;
		publish_busy();
	}
	return !decided;
}

/* Whether the next statement decides for a block, so that its own class does not matter. */
bool
governor_session_is_block_undecided(void)
{
	return block_undecided;
}

/*
 * This statement decides that the transaction takes no slot, and is held by no pause.  Of a block that is not decided yet
 * a later one decides.
 */
void
governor_session_pass_by(void)
{
	if (!block_undecided)
		decided = true;
}

/* A utility statement begins that may run several transactions. */
void
governor_session_utility_begins(void)
{
	governor_utility_depth++;
	publish_busy();
}

void
governor_session_utility_ends(void)
{
	governor_utility_depth--;
	publish_busy();
}

/*
 * Between two transactions of one command, and before a chained one, the session has no transaction
 * for a moment, and works all the same.
 */
static void
publish_busy(void)
{
	if (governor_my_session != NULL)
		pg_atomic_write_u32(&governor_my_session->busy,
							governor_utility_depth > 0 || chained_from != InvalidLocalTransactionId);
}

/*
 * COMMIT or ROLLBACK AND CHAIN: the next transaction begins without BEGIN.  After
 * an error this one has no number any more, but it had one before.
 */
void
governor_session_chains(bool by_commit)
{
	chained_from = seen_lxid;
	chained_by_commit = by_commit;
	publish_busy();
	/* Whoever asks whether this session works reads this before its transaction is over. */
	pg_memory_barrier();
}

/*
 * A transaction block that did not begin at a gate, after another
 * statement in the same message: it may hold locks and cannot queue, but it counts.
 */
void
governor_session_book(void)
{
	int			gate;

	decided = true;
	if (governor == NULL || !governor_gate_begin || !may_wait())
		return;
	governor_session_attach();
	if (standing == GOVERNOR_EXEMPT || governor_my_session->pool == GOVERNOR_NO_POOL)
		return;
	gate = gate_for(GOVERNOR_TRANSACTION);
	/* It may have a slot of this transaction, and keeps that. */
	if (governor_state_of(governor_my_index) == GOVERNOR_WARM && go_on_warm(gate))
		return;
	if (governor_state_of(governor_my_index) != GOVERNOR_IDLE ||
		pg_atomic_read_u32(&governor_gate_at(gate)->capacity) == 0 ||
		pg_atomic_read_u32(&governor->observing) != 0)
		return;
	governor_slot_book(governor_my_index, gate, role_for(gate));
	governor_warm_turn_begins(gate);
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
 * Takes a slot for this transaction, if it is gated, which may wait, or fail: at BEGIN
 * then the transaction fails at its first statement.  Exactly one decision is made
 * for each transaction: what began without a slot may hold locks by now, and must not
 * queue any more.
 */
void
governor_session_admit(GovernorClass class, GovernorBeginning where, bool gated, const GovernorStatement *statement)
{
	if (!governor_session_undecided())
		return;
	decided = true;
	if (governor == NULL || !may_wait())
	{
		block_undecided = false;
		return;
	}
	/* Errors of catalogs are no errors of the wait. */
	governor_session_attach();
	if (standing == GOVERNOR_EXEMPT || !governor_choice_is_any())
	{
		/* There may have been rules before. */
		if (standing != GOVERNOR_EXEMPT)
			enter_pool(own_pool);
		decide(class, where, gated, statement);
		return;
	}
	deciding = statement;
	PG_TRY();
	{
		choose_pool();
		if (first_statement_chooses(where, gated))
		{
			decided = false;
			block_undecided = true;
		}
		else
		{
			governor_choice_count(&choice);
			decide(class, where, gated, statement);
		}
	}
	PG_FINALLY();
	{
		deciding = NULL;
	}
	PG_END_TRY();
}

/* BEGIN without tags, and without a rule that holds for it, says nothing of what follows. */
static bool
first_statement_chooses(GovernorBeginning where, bool gated)
{
	return where == GOVERNOR_AT_BEGIN && gated && !block_undecided && choice.rule == GOVERNOR_NO_RULE &&
		choice.may_follow && !choice.is_tagged;
}

static void
decide(GovernorClass class, GovernorBeginning where, bool gated, const GovernorStatement *statement)
{
	if (block_undecided)
	{
		block_undecided = false;
		pass_at_first_statement(statement);
	}
	else if (where == GOVERNOR_AT_STATEMENT)
		pass(class, where, gated, statement);
	else
		pass_at_begin(class, gated, statement);
}

/*
 * The first statement of a block stands where others queue at BEGIN.  Where its wait ends in an error, the further ones fail as
 * well: after a savepoint they would run without a slot.
 */
static void
pass_at_first_statement(const GovernorStatement *statement)
{
	PG_TRY();
	{
		pass(GOVERNOR_TRANSACTION, GOVERNOR_AT_STATEMENT, governor_gate_begin, statement);
	}
	PG_CATCH();
	{
		governor_doom_remember();
		PG_RE_THROW();
	}
	PG_END_TRY();
}

/* BEGIN succeeds also where the wait ends in an error. */
static void
pass_at_begin(GovernorClass class, bool gated, const GovernorStatement *statement)
{
	MemoryContext callers = CurrentMemoryContext;

	PG_TRY();
	{
		pass(class, GOVERNOR_AT_BEGIN, gated, statement);
	}
	PG_CATCH();
	{
		governor_doom_set(callers);
	}
	PG_END_TRY();
}

static void
pass(GovernorClass class, GovernorBeginning where, bool gated, const GovernorStatement *statement)
{
	GovernorSnapshots snapshots = {.portal = statement->portal, .query = statement->query};

	while (pass_once(class, where, gated, &snapshots) == GOVERNOR_WAIT_MOVED)
		;
	governor_snapshots_renew(&snapshots);
}

/* In the pool that the session is in now. */
static GovernorWaitEnd
pass_once(GovernorClass class, GovernorBeginning where, bool gated, GovernorSnapshots *snapshots)
{
	GovernorWaitEnd end;
	int			gate;
	int			role;

	governor_session_attach();
	if (standing == GOVERNOR_EXEMPT || !governor_pools_are_governed())
		return GOVERNOR_WAIT_WITHOUT;
	if (governor_pause_is_any() && standing != GOVERNOR_PRIVILEGED && !governor_loopback_by_tcp())
		governor_pause_wait(snapshots);
	if (!gated)
		return GOVERNOR_WAIT_WITHOUT;
	if (governor_my_session->pool == GOVERNOR_NO_POOL && !governor_pools_hold())
		return GOVERNOR_WAIT_WITHOUT;
	if (governor_my_session->pool == GOVERNOR_NO_POOL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("there is no pool \"%s\"", governor_pool_name),
				 errhint("List it in pg_governor.pools, or change pg_governor.pool of the role or the database.")));
	gate = gate_for(class);
	role = role_for(gate);
	if (enter_at_once(gate, role))
		return GOVERNOR_WAIT_FREE;
	if (governor_loopback_by_tcp())
		return GOVERNOR_WAIT_WITHOUT;
	end = governor_wait_for_slot(gate, role, where == GOVERNOR_AT_BEGIN, snapshots);
	if (end == GOVERNOR_WAIT_FREE)
		count(&governor_my_session->admits_free[governor_class_of_gate(gate)]);
	governor_warm_turn_begins(gate);
	return end;
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
	/* A COMMIT AND CHAIN that fails begins nothing. */
	if (event == XACT_EVENT_ABORT && chained_by_commit)
	{
		chained_from = InvalidLocalTransactionId;
		publish_busy();
	}
	governor_doom_forget();
	governor_planner_depth = 0;
	block_undecided = false;
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
	governor_cancel_settle();
}

/* Runs after an open transaction was aborted, so that its locks are released. */
static void
session_exit(int code pg_attribute_unused(), Datum arg pg_attribute_unused())
{
	LWLockReleaseAll();
	governor_slot_end(governor_my_index, GOVERNOR_LEAVE_CANCELLED);
	governor_cancel_settle();
	hand_in_counts();
	pg_atomic_write_u64(&governor_my_session->paused_since, 0);
	pg_atomic_write_u32(&governor_my_session->busy, 0);
	pg_atomic_write_u32(&governor_my_session->moved_to, 0);
	governor_my_session->pool = GOVERNOR_NO_POOL;
	governor_my_session->pid = 0;
	governor_my_session = NULL;
}

/*
 * Finds or renews what this session is; cheap when nothing has changed.  What it was found
 * by is recorded last: after an error it is found anew.
 */
void
governor_session_attach(void)
{
	int			generation = governor_identity_generation;
	Oid			user = GetSessionUserId();
	uint32		pools = pg_atomic_read_u32(&governor->pools_generation);
	int			index = governor_my_proc_number();
	bool		unknown;

	if (is_known())
		return;
	standing = governor_find_standing(user);
	if (standing != GOVERNOR_EXEMPT)
		governor_choice_identify(user);
	if (index < 0 || index >= governor->session_count)
		standing = GOVERNOR_EXEMPT;
	if (governor_my_session == NULL && standing != GOVERNOR_EXEMPT)
	{
		governor_my_index = index;
		governor_my_session = governor_session_at(index);
		governor_my_session->pool = GOVERNOR_NO_POOL;
		governor_my_session->database = MyDatabaseId;
		governor_my_session->status = MyBEEntry;
		governor_my_session->drains = false;
		governor_my_session->discounted = false;
		governor_my_session->is_long = false;
		governor_my_session->blocks_others = false;
		governor_my_session->pid = MyProcPid;
		publish_busy();
		on_shmem_exit(session_exit, (Datum) 0);
		governor_wait_start();
	}
	/* Not one that was a superuser when it connected, either. */
	if (governor_my_session != NULL)
		governor_my_session->may_be_cancelled = standing == GOVERNOR_GOVERNED && user == GetAuthenticatedUserId();
	unknown = standing != GOVERNOR_EXEMPT && !find_pool(user);
	identity_generation = generation;
	session_user = user;
	pools_generation = pools;
	if (deciding != NULL)
		choose_pool();
	if (unknown)
		tell_of_unknown_pool();
}

static bool
is_known(void)
{
	return standing != GOVERNOR_UNKNOWN && identity_generation == governor_identity_generation &&
		session_user == GetSessionUserId() &&
		pools_generation == pg_atomic_read_u32(&governor->pools_generation) &&
		(governor_my_session == NULL || moved_to == pg_atomic_read_u32(&governor_my_session->moved_to));
}

/* By hand, by its setting, or the default one.  False if there is no pool of that name. */
static bool
find_pool(Oid user)
{
	int			pool;
	bool		found;

	moved_to = pg_atomic_read_u32(&governor_my_session->moved_to);
	is_moved = moved_to > 0 && governor_pool_is_used(moved_to - 1) && !governor->pools[moved_to - 1].retired;
	pool = is_moved ? (int) moved_to - 1 : governor_pool_find(governor_pool_name);
	found = pool != GOVERNOR_NO_POOL;
	if (!found && governor_unknown_pool == GOVERNOR_UNKNOWN_DEFAULT)
		pool = governor_pool_find(GOVERNOR_DEFAULT_POOL);
	own_pool = pool;
	/* A session that stays in its pool keeps its own counts. */
	if (pool != governor_my_session->pool)
		hand_in_counts();
	governor_pool_enter(governor_my_index, pool, user);
	return found;
}

/* The pool of this transaction: by a rule, unless an administrator has moved the session; or its own. */
static void
choose_pool(void)
{
	choice = governor_choice_of(deciding);
	enter_pool(choice.pool == GOVERNOR_NO_POOL || is_moved ? own_pool : choice.pool);
}

static void
enter_pool(int pool)
{
	if (pool == governor_my_session->pool)
		return;
	hand_in_counts();
	governor_pool_enter(governor_my_index, pool, GetSessionUserId());
}

static void
tell_of_unknown_pool(void)
{
	LWLockAcquire(governor->registry_lock, LW_EXCLUSIVE);
	strlcpy(governor->unknown_pool, governor_pool_name, NAMEDATALEN);
	LWLockRelease(governor->registry_lock);
	pg_atomic_fetch_add_u32(&governor->unknown_sessions, 1);
	if (governor_unknown_pool == GOVERNOR_UNKNOWN_DEFAULT)
		ereport(WARNING,
				(errmsg("pg_governor: there is no pool \"%s\", so this session is in pool \"%s\"",
						governor_pool_name, GOVERNOR_DEFAULT_POOL),
				 errhint("List it in pg_governor.pools.")));
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
	return IsUnderPostmaster && !proc_exit_inprogress && IsTransactionState() &&
		CritSectionCount == 0 && InterruptHoldoffCount == 0 && QueryCancelHoldoffCount == 0;
}

/* A big query without a limit of its own counts as any query. */
static int
gate_for(GovernorClass class)
{
	int			first = governor_my_session->pool * GOVERNOR_CLASSES;

	if (class == GOVERNOR_BIG_QUERY &&
		pg_atomic_read_u32(&governor_gate_at(first + class)->limit) == 0)
		class = GOVERNOR_QUERY;
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

/* A superuser or a reserved role, while there are reserved slots at all. */
bool
governor_session_may_use_reserve(void)
{
	return standing == GOVERNOR_PRIVILEGED && governor_reserved_slots > 0;
}

/* One that has become free since this session began to queue: it comes back to take it. */
bool
governor_session_reserve_is_free(void)
{
	return governor_session_may_use_reserve() &&
		pg_atomic_read_u32(&governor->reserved_taken) < (uint32) governor_reserved_slots;
}

/* Only this process raises it: a reset at the same moment may be lost. */
static void
count(pg_atomic_uint64 *counter)
{
	pg_atomic_write_u64(counter, pg_atomic_read_u64(counter) + 1);
}
