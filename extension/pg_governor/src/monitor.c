/*
 * monitor.c
 *		The background worker that looks at who queues and who runs, every few
 *		milliseconds while somebody queues (look.c has the rules), and compares the
 *		counters with the sessions (check.c).
 *
 * While nobody queues it sleeps.  While it is away those with a slot still hand it on;
 * after some seconds without it the gates are open (wait.c).
 */
#include "compat.h"

#include "libpq/pqsignal.h"
#include "postmaster/bgworker.h"
#include "postmaster/bgworker_internals.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "tcop/tcopprot.h"

#include "check.h"
#include "choice.h"
#include "clock.h"
#include "culprit.h"
#include "doze.h"
#include "gate.h"
#include "look.h"
#include "monitor.h"
#include "pool.h"
#include "problems.h"
#include "settings.h"
#include "word.h"

/* Between two looks while somebody queues. */
#define LOOK_MS 10

/* The locks of waiters are looked at every so many looks. */
#define LOOKS_PER_LOCK_LOOK 4

/* Between two samples for advice, and between two looks at a gate without a queue. */
#define SLOW_LOOK_MS 100

/* Between two checks of the counters while somebody queues. */
#define CHECK_EVERY_US 1000000

/* Sleep without a queue: signals and waiters end it earlier.  Its beat says that it lives. */
#define IDLE_SLEEP_MS 2000

#define WORKER_NAME "pg_governor monitor"

PGDLLEXPORT void governor_monitor_main(Datum arg);

static bool is_registered(void);
static void take_office(void);
static void leave_office(int code, Datum arg);
static void reload(void);
static long look(int64 now);

void
governor_monitor_register(void)
{
	BackgroundWorker worker = {0};

	strlcpy(worker.bgw_name, WORKER_NAME, BGW_MAXLEN);
	strlcpy(worker.bgw_type, WORKER_NAME, BGW_MAXLEN);
	strlcpy(worker.bgw_library_name, "pg_governor", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "governor_monitor_main", BGW_MAXLEN);
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;
	worker.bgw_restart_time = 1;
	RegisterBackgroundWorker(&worker);
	/* Where processes are not forked each one comes here, and only the first registers. */
	if (!IsUnderPostmaster && !is_registered())
		ereport(WARNING,
				(errmsg("pg_governor: no background worker is free for the monitor, so every gate stays open"),
				 errhint("Increase max_worker_processes.")));
}

/* Registering says nothing when there is no room but a line in the log. */
static bool
is_registered(void)
{
	governor_worker_iter iter;

	governor_foreach_worker(iter)
	{
		if (strcmp(governor_worker_of(iter)->rw_worker.bgw_name, WORKER_NAME) == 0)
			return true;
	}
	return false;
}

void
governor_monitor_main(Datum arg pg_attribute_unused())
{
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	/* To no database: only so that pg_stat_activity shows the monitor. */
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	governor_look_start();
	governor_culprit_start();
	take_office();

	for (;;)
	{
		int64		now;
		long		sleep_ms;

		CHECK_FOR_INTERRUPTS();
		governor_doze_end();
		/* What the look sees, and the settings that it goes by, are no older than this. */
		now = governor_now_us();
		if (ConfigReloadPending)
			reload();
		sleep_ms = look(now);
		if (sleep_ms > LOOK_MS && !governor_doze_begin())
			continue;
		(void) WaitLatch(MyLatch,
						 (sleep_ms > LOOK_MS ? WL_LATCH_SET : 0) | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 sleep_ms, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
}

static void
take_office(void)
{
	before_shmem_exit(leave_office, (Datum) 0);
	pg_atomic_write_u64(&governor->monitor_beat, governor_now_us());
	governor->monitor = governor_my_proc_number();
	governor_pools_publish();
	governor_choice_publish();
	/* Who sees it knows that the limits are there. */
	governor->monitor_pid = MyProcPid;
	governor_problems_publish();
}

/* The next one is there in a second: the gates stay as they are. */
static void
leave_office(int code pg_attribute_unused(), Datum arg pg_attribute_unused())
{
	LWLockReleaseAll();
	governor->monitor = GOVERNOR_NOBODY;
	governor->monitor_pid = 0;
}

/* Settings have changed, also for those who queue. */
static void
reload(void)
{
	ConfigReloadPending = false;
	ProcessConfigFile(PGC_SIGHUP);
	governor_pools_publish();
	governor_choice_publish();
	governor_problems_publish();
	for (int i = 0; i < governor->session_count; i++)
		if (governor_state_of(i) == GOVERNOR_QUEUED ||
			pg_atomic_read_u64(&governor_session_at(i)->paused_since) != 0)
			SetLatch(&ProcGlobal->allProcs[i].procLatch);
}

/* Looks, and checks now and then.  Returns how long to sleep. */
static long
look(int64 now)
{
	static uint32 round = 0;
	static int64 sampled_at = 0;
	static int64 checked_at = 0;
	bool		observing = governor_pools_observe();
	GovernorLookAgain again;
	int			what = 0;

	if (round++ % LOOKS_PER_LOCK_LOOK == 0)
		what |= GOVERNOR_LOOK_AT_LOCKS;
	if (now - sampled_at >= SLOW_LOOK_MS * US_PER_MS && (observing || governor_gate_anyone_queued()))
	{
		what |= GOVERNOR_LOOK_SAMPLE;
		sampled_at = now;
	}
	again = governor_look(what);
	if (again != GOVERNOR_LOOK_WHEN_WOKEN)
		governor_culprit_look(now);
	pg_atomic_write_u64(&governor->monitor_beat, now);
	if (again == GOVERNOR_LOOK_WHEN_WOKEN || now - checked_at >= CHECK_EVERY_US)
	{
		governor_check_and_repair();
		governor_pools_free_unused();
		checked_at = now;
	}
	if (again == GOVERNOR_LOOK_SOON)
		return LOOK_MS;
	return again == GOVERNOR_LOOK_SLOWLY || observing ? SLOW_LOOK_MS : IDLE_SLEEP_MS;
}
