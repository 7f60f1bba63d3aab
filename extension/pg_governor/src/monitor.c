/*
 * monitor.c
 *		While somebody queues, looks every few milliseconds at who has the slots
 *		and who waits, and lets more in where the limit alone would do harm.
 *
 * Four rules, for each gate:
 *	- Discount: a session that has a slot and works without the CPU for longer
 *	  than discount_time (its client thinks, it sleeps, it waits for a remote
 *	  server) does not count against the limit.  One that waits for a
 *	  synchronous standby does not count at once.  One that waits for a lock does
 *	  not count after stall_time: shorter lock waits are what a limit is for.
 *	- WAL sync: sessions in the flush of their commit do not count, on average
 *	  over some looks, and no more of them than the limit.
 *	- Stall: no transaction has ended for stall_time; one more is let in, and the
 *	  limit stays higher while those that were there then still run.
 *	- Blocking: somebody waits for a lock of a session that queues.  It is let in,
 *	  since its slot might come from just the one that waits for it, a deadlock
 *	  that PostgreSQL cannot see.
 *
 * It reads the wait events and the lists of locks of other processes without
 * their locks: a wrong look is corrected by the next one.  While nobody queues
 * it sleeps.  Without it every gate is open.
 */
#include "compat.h"

#include "libpq/pqsignal.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "gate.h"
#include "monitor.h"
#include "pool.h"
#include "settings.h"

/* Between two looks while somebody queues. */
#define LOOK_MS 10

/* The locks of waiters are looked at every so many looks. */
#define LOOKS_PER_LOCK_LOOK 4

/* A warm session that has not come back after this loses its slot. */
#define WARM_KEPT_US 20000

/* Sleep without a queue: only signals and waiters end it earlier. */
#define IDLE_SLEEP_MS 60000

/* What a wait says about the use of the CPU. */
typedef enum WaitKind
{
	WAIT_NOT,					/* runs, or waits for something short */
	WAIT_FLUSH,					/* for its commit record to be on disk */
	WAIT_STANDBY,				/* for a synchronous standby */
	WAIT_LOCK,
	WAIT_OUTSIDE,				/* for its client, a timer, another server */
} WaitKind;

/* What the last look saw of a session. */
typedef struct Sighting
{
	uint32		wait_event_info;
	uint32		statements;
	TimestampTz since;
} Sighting;

/* What this look has found out about a gate. */
typedef struct GateLook
{
	uint32		discounted;
	uint32		flushing;
	uint32		long_running;	/* not discounted, and let in before stall_time */
} GateLook;

/* What is remembered of a gate from look to look. */
typedef struct GateWatch
{
	double		flushing_average;
	uint64		progress;
	TimestampTz progress_at;
	uint32		stall_credit;
} GateWatch;

PGDLLEXPORT void governor_monitor_main(Datum arg);

static Sighting *sightings;
static GateLook *looks;
static GateWatch *watches;

static void allocate(void);
static void take_office(void);
static void leave_office(int code, Datum arg);
static void reload(void);
static bool look(bool at_locks);
static bool anyone_queued(void);
static void look_at_sessions(TimestampTz now, bool at_locks);
static void look_at_runner(int index, TimestampTz now);
static void take_back_if_cold(int index, TimestampTz now);
static void let_in_if_blocking(int index);
static bool blocks_somebody(PGPROC *proc);
static WaitKind wait_kind(uint32 wait_event_info);
static bool is_discounted(WaitKind kind, TimestampTz waiting_us);
static void settle_gate(int gate, TimestampTz now);
static void stall_rule(int gate, TimestampTz now);

void
governor_monitor_register(void)
{
	BackgroundWorker worker = {0};

	strlcpy(worker.bgw_name, "pg_governor monitor", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "pg_governor monitor", BGW_MAXLEN);
	strlcpy(worker.bgw_library_name, "pg_governor", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "governor_monitor_main", BGW_MAXLEN);
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;
	worker.bgw_restart_time = 1;
	RegisterBackgroundWorker(&worker);
}

/* Called by a session that has begun to queue. */
void
governor_monitor_wake(void)
{
	int			monitor = governor->monitor;

	if (monitor != GOVERNOR_NOBODY && pg_atomic_read_u32(&governor->monitor_asleep) != 0)
		SetLatch(&ProcGlobal->allProcs[monitor].procLatch);
}

void
governor_monitor_main(Datum arg pg_attribute_unused())
{
	uint32		round = 0;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	/* To no database: only so that pg_stat_activity shows the monitor. */
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	allocate();
	take_office();

	for (;;)
	{
		bool		busy;

		CHECK_FOR_INTERRUPTS();
		pg_atomic_write_u32(&governor->monitor_asleep, 0);
		if (ConfigReloadPending || pg_atomic_exchange_u32(&governor->limits_stale, 0) != 0)
			reload();
		busy = look(round++ % LOOKS_PER_LOCK_LOOK == 0);
		if (!busy)
		{
			/* Who queues from here on sees that we sleep, or is seen by us. */
			pg_atomic_exchange_u32(&governor->monitor_asleep, 1);
			busy = anyone_queued();
		}
		(void) WaitLatch(MyLatch, (busy ? 0 : WL_LATCH_SET) | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 busy ? LOOK_MS : IDLE_SLEEP_MS, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
}

static void
allocate(void)
{
	sightings = MemoryContextAllocZero(TopMemoryContext,
									   governor->session_count * sizeof(Sighting));
	looks = MemoryContextAllocZero(TopMemoryContext,
								   governor->pool_max * GOVERNOR_CLASSES * sizeof(GateLook));
	watches = MemoryContextAllocZero(TopMemoryContext,
									 governor->pool_max * GOVERNOR_CLASSES * sizeof(GateWatch));
}

static void
take_office(void)
{
	before_shmem_exit(leave_office, (Datum) 0);
	pg_atomic_write_u64(&governor->monitor_beat, GetCurrentTimestamp());
	governor->monitor = governor_my_proc_number();
	governor_pools_publish_limits();
}

/* Opens every gate: nobody is to wait for rules that nobody applies. */
static void
leave_office(int code pg_attribute_unused(), Datum arg pg_attribute_unused())
{
	LWLockReleaseAll();
	governor->monitor = GOVERNOR_NOBODY;
	governor_pools_publish_limits();
	for (int gate = 0; gate < governor->pool_count * GOVERNOR_CLASSES; gate++)
		governor_gate_admit_free(gate);
}

static void
reload(void)
{
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
	governor_pools_publish_limits();
}

/* One look at everything.  Returns whether somebody still queues. */
static bool
look(bool at_locks)
{
	TimestampTz now;

	if (!anyone_queued())
	{
		for (int gate = 0; gate < governor->pool_count * GOVERNOR_CLASSES; gate++)
			settle_gate(gate, 0);
		return false;
	}
	now = GetCurrentTimestamp();
	pg_atomic_write_u64(&governor->monitor_beat, now);
	memset(looks, 0, governor->pool_count * GOVERNOR_CLASSES * sizeof(GateLook));
	look_at_sessions(now, at_locks);
	for (int gate = 0; gate < governor->pool_count * GOVERNOR_CLASSES; gate++)
		settle_gate(gate, now);
	return true;
}

static bool
anyone_queued(void)
{
	for (int gate = 0; gate < governor->pool_count * GOVERNOR_CLASSES; gate++)
		if (governor_gate_occupancy(governor_gate_at(gate)).queued > 0)
			return true;
	return false;
}

static void
look_at_sessions(TimestampTz now, bool at_locks)
{
	for (int i = 0; i < governor->session_count; i++)
	{
		switch (pg_atomic_read_u32(&governor_session_at(i)->state))
		{
			case GOVERNOR_RUNNING:
				look_at_runner(i, now);
				break;
			case GOVERNOR_WARM:
				take_back_if_cold(i, now);
				break;
			case GOVERNOR_QUEUED:
				if (at_locks)
					let_in_if_blocking(i);
				break;
			default:
				break;
		}
	}
}

static void
look_at_runner(int index, TimestampTz now)
{
	GovernorSession *session = governor_session_at(index);
	Sighting   *last = &sightings[index];
	GateLook   *gate = &looks[session->gate];
	uint32		wait = *(volatile uint32 *) &ProcGlobal->allProcs[index].wait_event_info;
	uint32		statements = session->statements;
	WaitKind	kind = wait_kind(wait);

	if (wait != last->wait_event_info || statements != last->statements)
	{
		last->wait_event_info = wait;
		last->statements = statements;
		last->since = now;
	}
	session->discounted = is_discounted(kind, now - last->since);
	if (session->discounted)
		gate->discounted++;
	else if (kind == WAIT_FLUSH)
		gate->flushing++;
	else if (now - session->since > governor_stall_time_ms * INT64CONST(1000))
		gate->long_running++;
}

static void
take_back_if_cold(int index, TimestampTz now)
{
	GovernorSession *session = governor_session_at(index);
	uint32		warm = GOVERNOR_WARM;
	int			gate = session->gate;

	if (now - session->since < WARM_KEPT_US ||
		governor_gate_occupancy(governor_gate_at(gate)).queued == 0)
		return;
	if (pg_atomic_compare_exchange_u32(&session->state, &warm, GOVERNOR_IDLE))
		governor_gate_release(gate);
}

static void
let_in_if_blocking(int index)
{
	GovernorSession *session = governor_session_at(index);
	int			gate = session->gate;

	session->blocks_others = blocks_somebody(&ProcGlobal->allProcs[index]);
	if (session->blocks_others && gate != GOVERNOR_NOBODY)
		governor_gate_run_anyway(gate, index, GOVERNOR_BY_BLOCKING);
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

static WaitKind
wait_kind(uint32 wait_event_info)
{
	switch (wait_event_info & 0xFF000000)
	{
		case PG_WAIT_LOCK:
			return WAIT_LOCK;
		case PG_WAIT_CLIENT:
		case PG_WAIT_TIMEOUT:
		case PG_WAIT_EXTENSION:
			return WAIT_OUTSIDE;
		case PG_WAIT_IPC:
			return wait_event_info == WAIT_EVENT_SYNC_REP ? WAIT_STANDBY : WAIT_NOT;
		case PG_WAIT_IO:
			return wait_event_info == WAIT_EVENT_WAL_SYNC ? WAIT_FLUSH : WAIT_NOT;
		case PG_WAIT_LWLOCK:
			return wait_event_info == (PG_WAIT_LWLOCK | WALWriteLock->tranche) ?
				WAIT_FLUSH : WAIT_NOT;
		default:
			return WAIT_NOT;
	}
}

static bool
is_discounted(WaitKind kind, TimestampTz waiting_us)
{
	if (governor_discount_time_ms == 0)
		return false;
	switch (kind)
	{
		case WAIT_STANDBY:
			return true;
		case WAIT_OUTSIDE:
			return waiting_us >= governor_discount_time_ms * INT64CONST(1000);
		case WAIT_LOCK:
			return waiting_us >= Max(governor_stall_time_ms, governor_discount_time_ms) *
				INT64CONST(1000);
		default:
			return false;
	}
}

/* Sets how many slots there are now, and lets in as many as that allows. */
static void
settle_gate(int gate_index, TimestampTz now)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	GateWatch  *watch = &watches[gate_index];
	GateLook   *seen = &looks[gate_index];
	uint32		limit = pg_atomic_read_u32(&gate->limit);
	uint32		flushing;

	if (limit == 0 || governor_gate_occupancy(gate).queued == 0)
	{
		/* Nobody to let in: forget, so that the next queue starts afresh. */
		pg_atomic_write_u32(&gate->capacity, limit);
		memset(watch, 0, sizeof(*watch));
		if (limit == 0)
			governor_gate_admit_free(gate_index);
		return;
	}
	watch->flushing_average += (seen->flushing - watch->flushing_average) / 8;
	flushing = Min((uint32) watch->flushing_average, limit);
	watch->stall_credit = Min(watch->stall_credit, seen->long_running);
	pg_atomic_write_u32(&gate->capacity,
						limit + seen->discounted + flushing + watch->stall_credit);
	governor_gate_admit_free(gate_index);
	stall_rule(gate_index, now);
}

static void
stall_rule(int gate_index, TimestampTz now)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	GateWatch  *watch = &watches[gate_index];
	uint64		progress = pg_atomic_read_u64(&gate->progress);

	if (watch->progress_at == 0 || progress != watch->progress)
	{
		watch->progress = progress;
		watch->progress_at = now;
		return;
	}
	if (governor_stall_time_ms == 0 ||
		now - watch->progress_at < governor_stall_time_ms * INT64CONST(1000))
		return;
	if (governor_gate_admit_head(gate_index, GOVERNOR_BY_STALL))
	{
		LWLockAcquire(governor_gate_lock(gate_index), LW_EXCLUSIVE);
		gate->stats.stalls++;
		LWLockRelease(governor_gate_lock(gate_index));
		watch->stall_credit++;
		watch->progress_at = now;
	}
}
