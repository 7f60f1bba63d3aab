/*
 * pause.c
 *		Pools and databases whose sessions begin nothing new for now: waiting for the
 *		end of a pause, and the functions that begin and end it.
 *
 * Who queues in a pool that is paused leaves its queue, and queues again afterwards.
 * Superusers and reserved roles pass, so that somebody can end the pause.  So does who has
 * a lock that somebody waits for: what runs would not end otherwise, nor would the pause.
 */
#include "compat.h"

#include "catalog/pg_database.h"
#include "commands/dbcommands.h"
#include "storage/ipc.h"
#include "utils/builtins.h"
#include "utils/syscache.h"

#include "block.h"
#include "clock.h"
#include "pause.h"
#include "pool.h"
#include "rows.h"
#include "session.h"
#include "settings.h"
#include "wait.h"
#include "word.h"

PG_FUNCTION_INFO_V1(pg_governor_pause);
GOVERNOR_FORMER_NAME(pg_governor_pause, _0_3);
PG_FUNCTION_INFO_V1(pg_governor_resume);
GOVERNOR_FORMER_NAME(pg_governor_resume, _0_3);

/* A pause is looked at again after this, if nobody has woken the session. */
#define PAUSE_CHECK_MS 1000

/* The same for a session that has locks, for which somebody may wait. */
#define LOCKS_CHECK_MS 100

/* Between two looks whether the last transaction has ended. */
#define DRAIN_CHECK_MS 20

/* What a call is about: a pool, a database, or all pools. */
typedef struct Scope
{
	int			pool;			/* GOVERNOR_NO_POOL: not by pool */
	Oid			database;		/* InvalidOid: not by database */
} Scope;

/* What a call has paused that was not paused before. */
typedef struct PauseChange
{
	bool	   *pools;
	bool		new_pools;
	Oid			database;
} PauseChange;

static bool is_paused(void);
static void need_effect(void);
static void forget_dropped_databases(void);
static Scope read_scope(FunctionCallInfo fcinfo);
static bool is_in(const Scope *scope, int session);
static void drain(const Scope *scope);
static PauseChange set_pause(const Scope *scope, bool paused);
static void undo_pause(int code, Datum change);
static bool is_held(const Scope *scope, int index);
static int	count_held(const Scope *scope);
static void wake_held(const Scope *scope);
static bool set_database(Oid database, bool paused);
static void send_queue_away(const Scope *scope);
static bool is_at_work(int session);
static bool anyone_works(const Scope *scope);

/* The cheap question, which every transaction asks. */
bool
governor_pause_is_any(void)
{
	return pg_atomic_read_u32(&governor->pauses) > 0;
}

/*
 * Waits until neither this session's pool, which may change meanwhile, nor its database is
 * paused.
 */
void
governor_pause_wait(GovernorSnapshots *snapshots)
{
	int64		since = governor_now_us();
	int64		check_ms = governor_wait_holds_locks() ? LOCKS_CHECK_MS : PAUSE_CHECK_MS;

	if (!is_paused())
		return;
	governor_transaction_timeout_hold();
	pg_atomic_exchange_u64(&governor_my_session->paused_since, since);
	PG_TRY();
	{
		governor_snapshots_give_up(snapshots);
		while (is_paused() && !governor_block_keeps_others())
		{
			int64		waited_ms = (governor_now_us() - since) / US_PER_MS;
			int64		left_ms = governor_user_queue_timeout_ms > 0 ?
				governor_user_queue_timeout_ms - waited_ms : check_ms;

			if (left_ms <= 0)
				ereport(ERROR,
						(errcode(MAKE_SQLSTATE('5', '3', 'G', '0', '1')),
						 errmsg("canceling statement due to queue timeout"),
						 errdetail("The pool or the database is paused.")));
			governor_wait_sleep(Min(left_ms, check_ms), GOVERNOR_WAITS_FOR_RESUME);
			governor_session_attach();
		}
	}
	PG_FINALLY();
	{
		pg_atomic_write_u64(&governor_my_session->paused_since, 0);
		governor_transaction_timeout_resume();
	}
	PG_END_TRY();
}

static bool
is_paused(void)
{
	int			pool = governor_my_session->pool;

	if (!governor_pause_is_any() || !governor_pools_hold())
		return false;
	if (pool != GOVERNOR_NO_POOL && pg_atomic_read_u32(&governor->pools[pool].paused) != 0)
		return true;
	for (int i = 0; i < GOVERNOR_PAUSED_DATABASES; i++)
		if (*(volatile Oid *) &governor->paused_databases[i] == MyDatabaseId)
			return true;
	return false;
}

/* (pool, database, wait): with neither of the first two all pools. */
Datum
pg_governor_pause(PG_FUNCTION_ARGS)
{
	Scope		scope = read_scope(fcinfo);
	PauseChange change;

	need_effect();
	change = set_pause(&scope, true);
	/* A pause whose caller is cancelled, or ends, before the work of others has ended is no pause. */
	PG_ENSURE_ERROR_CLEANUP(undo_pause, PointerGetDatum(&change));
	{
		send_queue_away(&scope);
		if (!PG_ARGISNULL(2) && PG_GETARG_BOOL(2))
			drain(&scope);
	}
	PG_END_ENSURE_ERROR_CLEANUP(undo_pause, PointerGetDatum(&change));
	PG_RETURN_VOID();
}

static void
undo_pause(int code pg_attribute_unused(), Datum arg)
{
	PauseChange *change = (PauseChange *) DatumGetPointer(arg);
	const Scope everybody = {GOVERNOR_NO_POOL, InvalidOid};

	LWLockAcquire(governor->registry_lock, LW_EXCLUSIVE);
	for (int i = 0; i < governor->pool_count; i++)
		if (change->pools[i])
			pg_atomic_write_u32(&governor->pools[i].paused, 0);
	if (change->new_pools)
		governor->pause_new_pools = false;
	if (OidIsValid(change->database))
		(void) set_database(change->database, false);
	governor_pools_count_pauses();
	LWLockRelease(governor->registry_lock);
	wake_held(&everybody);
}

/*
 * Waits until all others have ended what they do.  Two that wait for each other would not
 * end: one that waits here does nothing else.
 */
static void
drain(const Scope *scope)
{
	GovernorSession *self = governor_my_session;

	if (self != NULL)
		self->drains = true;
	PG_TRY();
	{
		while (anyone_works(scope))
		{
			(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, DRAIN_CHECK_MS,
							 PG_WAIT_EXTENSION);
			ResetLatch(MyLatch);
			CHECK_FOR_INTERRUPTS();
			need_effect();
		}
	}
	PG_FINALLY();
	{
		if (self != NULL)
			self->drains = false;
	}
	PG_END_TRY();
}

/* Nobody shall believe that nothing begins while it does. */
static void
need_effect(void)
{
	if (!governor_pools_hold())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("a pause holds no session now, since %s",
						governor_pools_are_governed() ? "pg_governor.mode is observe" : "pg_governor.enabled is off"),
				 errhint("Change the setting, reload the configuration, and pause again.")));
}

/* (pool, database); returns how many sessions the pause has held. */
Datum
pg_governor_resume(PG_FUNCTION_ARGS)
{
	Scope		scope = read_scope(fcinfo);
	/* Counted before: who looks again by itself after the change is held no longer. */
	int			held = count_held(&scope);

	(void) set_pause(&scope, false);
	wake_held(&scope);
	PG_RETURN_INT32(held);
}

static bool
is_held(const Scope *scope, int index)
{
	return pg_atomic_read_u64(&governor_session_at(index)->paused_since) != 0 && is_in(scope, index);
}

static int
count_held(const Scope *scope)
{
	int			held = 0;

	for (int i = 0; i < governor->session_count; i++)
		held += is_held(scope, i);
	return held;
}

/* Has those look again who are held by a pause. */
static void
wake_held(const Scope *scope)
{
	for (int i = 0; i < governor->session_count; i++)
		if (is_held(scope, i))
			SetLatch(&ProcGlobal->allProcs[i].procLatch);
}

static Scope
read_scope(FunctionCallInfo fcinfo)
{
	Scope		scope = {GOVERNOR_NO_POOL, InvalidOid};

	governor_rows_need_library();
	if (!PG_ARGISNULL(0))
		scope.pool = governor_rows_pool(PG_GETARG_TEXT_PP(0));
	if (!PG_ARGISNULL(1))
		scope.database = get_database_oid(NameStr(*PG_GETARG_NAME(1)), false);
	if (scope.pool != GOVERNOR_NO_POOL && OidIsValid(scope.database))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("either a pool or a database can be named, not both")));
	return scope;
}

static bool
is_in(const Scope *scope, int index)
{
	GovernorSession *session = governor_session_at(index);

	if (session->pid == 0)
		return false;
	if (OidIsValid(scope->database))
		return session->database == scope->database;
	return scope->pool == GOVERNOR_NO_POOL || session->pool == scope->pool;
}

/* With neither a pool nor a database it is about all pools, those included that a reload adds. */
static PauseChange
set_pause(const Scope *scope, bool paused)
{
	PauseChange change = {.pools = palloc0(governor->pool_max * sizeof(bool))};
	bool		all = scope->pool == GOVERNOR_NO_POOL && !OidIsValid(scope->database);

	forget_dropped_databases();
	LWLockAcquire(governor->registry_lock, LW_EXCLUSIVE);
	if (OidIsValid(scope->database) && set_database(scope->database, paused))
		change.database = scope->database;
	for (int i = 0; i < governor->pool_count; i++)
		if (governor_pool_is_used(i) && (all || scope->pool == i))
			change.pools[i] = pg_atomic_exchange_u32(&governor->pools[i].paused, paused) != (uint32) paused;
	if (all && governor->pause_new_pools != paused)
	{
		governor->pause_new_pools = paused;
		change.new_pools = true;
	}
	governor_pools_count_pauses();
	LWLockRelease(governor->registry_lock);
	pg_memory_barrier();
	return change;
}

/* Nobody could name them any more. */
static void
forget_dropped_databases(void)
{
	for (int i = 0; i < GOVERNOR_PAUSED_DATABASES; i++)
	{
		Oid			database = *(volatile Oid *) &governor->paused_databases[i];

		if (!OidIsValid(database) || SearchSysCacheExists1(DATABASEOID, ObjectIdGetDatum(database)))
			continue;
		LWLockAcquire(governor->registry_lock, LW_EXCLUSIVE);
		if (governor->paused_databases[i] == database)
			governor->paused_databases[i] = InvalidOid;
		LWLockRelease(governor->registry_lock);
	}
}

/* Under the registry's lock.  True if it was otherwise before. */
static bool
set_database(Oid database, bool paused)
{
	int			place = -1;
	bool		was_paused = false;

	for (int i = 0; i < GOVERNOR_PAUSED_DATABASES; i++)
	{
		if (governor->paused_databases[i] == database)
		{
			governor->paused_databases[i] = InvalidOid;
			was_paused = true;
		}
		if (!OidIsValid(governor->paused_databases[i]))
			place = i;
	}
	if (!paused)
		return was_paused;
	if (place < 0)
	{
		LWLockRelease(governor->registry_lock);
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("at most %d databases can be paused at the same time", GOVERNOR_PAUSED_DATABASES),
				 errhint("Pause pools instead, or resume a database first.")));
	}
	governor->paused_databases[place] = database;
	return !was_paused;
}

static void
send_queue_away(const Scope *scope)
{
	for (int i = 0; i < governor->session_count; i++)
		if (governor_state_of(i) == GOVERNOR_QUEUED && is_in(scope, i))
		{
			pg_atomic_write_u32(&governor_session_at(i)->order, GOVERNOR_ORDER_MOVE);
			SetLatch(&ProcGlobal->allProcs[i].procLatch);
		}
}

/*
 * In a transaction, or between two of one command.  A session says that it is busy while it has a transaction,
 * and stops saying so while it has one: whoever looks for both in this order misses neither the
 * beginning nor the end of such a command.
 */
static bool
is_at_work(int session)
{
	PGPROC	   *proc = &ProcGlobal->allProcs[session];
	bool		works = governor_proc_in_transaction(proc);

	pg_memory_barrier();
	works = works || pg_atomic_read_u32(&governor_session_at(session)->busy) != 0;
	pg_memory_barrier();
	return works || governor_proc_in_transaction(proc);
}

/*
 * Whether somebody else is in a transaction, or between two of one command, and neither is held by a
 * pause nor waits for it.
 */
static bool
anyone_works(const Scope *scope)
{
	for (int i = 0; i < governor->session_count; i++)
		if (i != governor_my_proc_number() && is_in(scope, i) &&
			is_at_work(i) && !governor_session_at(i)->drains &&
			pg_atomic_read_u64(&governor_session_at(i)->paused_since) == 0)
			return true;
	return false;
}
