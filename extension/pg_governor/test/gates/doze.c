/*
 * doze.c
 *		The monitor falls asleep while sessions queue, with delays
 *		between the steps of both: it never sleeps through one of them.
 *
 *	doze [ROUNDS]		10,000 for each of three sessions without an argument
 *
 * Before that, when a waiter finds the monitor gone, by what its own sleeps were.
 *
 * Here the monitor's sleep has no timeout.  So a session that it does not see is
 * never served, and the test fails after the time in which nothing happened.
 */
#include "server.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/clock.h"
#include "../../src/doze.h"
#include "../../src/gate.h"
#include "../../src/slot.h"
#include "../../src/word.h"

#define SESSIONS 3
#define MONITOR SESSIONS
#define NEVER_US INT64CONST(20000000)

static pg_atomic_uint32 *sleeps;

static bool slot_found_when_about_to_queue(void);
static bool beat_is_watched(void);
static int	found_gone_at(int64 slept_us, int beats_at);
static void monitor(void);
static bool session(int me, int rounds);
static bool queue_once(int me);

int
main(int argc, char **argv)
{
	int			rounds = argc > 1 ? atoi(argv[1]) : 10000;
	pid_t		monitor_pid;
	int			failed = 0;

	server_start(1, SESSIONS);
	if (!slot_found_when_about_to_queue() || !beat_is_watched())
		return 1;
	sleeps = server_memory(sizeof(*sleeps));
	governor->monitor = MONITOR;
	/* The one slot is taken for ever, so that only the monitor lets anybody in. */
	pg_atomic_write_u32(&governor_gate_at(GOVERNOR_TRANSACTION)->capacity, 1);
	governor_gate_take_anyway(GOVERNOR_TRANSACTION, GOVERNOR_ROLE_ANY);
	monitor_pid = fork();
	if (monitor_pid == 0)
		monitor();
	for (int i = 0; i < SESSIONS; i++)
		if (fork() == 0)
			_exit(session(i, rounds) ? 0 : 1);
	for (int i = 0; i < SESSIONS; i++)
	{
		int			status;

		wait(&status);
		failed += status != 0;
	}
	kill(monitor_pid, SIGKILL);
	wait(NULL);
	printf("%d sessions, %d rounds each: the monitor slept %u times, %d sessions were not seen\n",
		   SESSIONS, rounds, pg_atomic_read_u32(sleeps), failed);
	return failed == 0 && pg_atomic_read_u32(sleeps) > 0 ? 0 : 1;
}

/* With an old time the monitor would take the new transaction for a long one. */
static bool
slot_found_when_about_to_queue(void)
{
	bool		timed;

	governor_session_at(0)->since = 0;
	timed = governor_gate_join(GOVERNOR_TRANSACTION, 0, GOVERNOR_ROLE_ANY, 0) == GOVERNOR_JOIN_ENTERED &&
		governor_session_at(0)->since != 0;
	governor_slot_release(0);
	if (!timed)
		printf("a session that finds a slot when it is about to queue has not the time since when\n");
	return timed;
}

static bool
beat_is_watched(void)
{
	/* After how long the waiter wakes each time, at which wake-up the monitor moves, and at which it is found gone. */
	static const struct
	{
		const char *name;
		int64		slept_us;
		int			beats_at;
		int			expected;
	}			cases[] = {
		{"a monitor that does not move", GOVERNOR_PROBE_MS * US_PER_MS, 0, GOVERNOR_PROBES},
		{"one that moves at last", GOVERNOR_PROBE_MS * US_PER_MS, GOVERNOR_PROBES, 0},
		{"one that moves in between, and then no more", GOVERNOR_PROBE_MS * US_PER_MS, 5, 5 + GOVERNOR_PROBES},
		{"something else wakes the waiter", GOVERNOR_PROBE_MS * US_PER_MS / 10, 0, 0},
		{"the waiter stands still, too", 2 * GOVERNOR_PROBES * GOVERNOR_PROBE_MS * US_PER_MS, 0, 0},
	};
	bool		right = true;

	for (int i = 0; i < lengthof(cases); i++)
	{
		int			found = found_gone_at(cases[i].slept_us, cases[i].beats_at);

		if (found == cases[i].expected)
			continue;
		printf("%s: found gone at wake-up %d, and not at %d\n", cases[i].name, found, cases[i].expected);
		right = false;
	}
	pg_atomic_write_u64(&governor->monitor_beat, 0);
	return right;
}

/* At which of a waiter's wake-ups it finds the monitor gone; 0 if at none of the first 2 * GOVERNOR_PROBES - 1. */
static int
found_gone_at(int64 slept_us, int beats_at)
{
	uint64		late = governor_now_us() - 2 * GOVERNOR_SILENCE_MS * US_PER_MS;
	GovernorBeatWatch watch = {0};

	pg_atomic_write_u64(&governor->monitor_beat, late);
	pg_atomic_write_u64(&governor->silent_beat, 0);
	(void) governor_doze_watch(&watch);
	for (int wake_up = 1; wake_up < 2 * GOVERNOR_PROBES; wake_up++)
	{
		if (wake_up == beats_at)
			pg_atomic_write_u64(&governor->monitor_beat, late + 1);
		watch.looked_at = governor_now_us() - slept_us;
		if (governor_doze_watch(&watch))
			return wake_up;
	}
	return 0;
}

/* The loop of monitor.c, without its timeouts. */
static void
monitor(void)
{
	Latch	   *latch = &ProcGlobal->allProcs[MONITOR].procLatch;

	server_seed(MONITOR);
	for (;;)
	{
		governor_doze_end();
		for (int i = 0; i < SESSIONS; i++)
			governor_gate_run_anyway(i, GOVERNOR_BY_BLOCKING);
		if (!governor_doze_begin())
			continue;
		pg_atomic_fetch_add_u32(sleeps, 1);
		while (!*(volatile sig_atomic_t *) &latch->is_set)
			sched_yield();
		latch->is_set = false;
		pg_memory_barrier();
	}
}

static bool
session(int me, int rounds)
{
	server_seed(me);
	while (rounds-- > 0)
		if (!queue_once(me))
			return false;
	return true;
}

static bool
queue_once(int me)
{
	int64		began = governor_now_us();

	if (governor_slot_take(me, GOVERNOR_TRANSACTION, GOVERNOR_ROLE_ANY) == GOVERNOR_FULL &&
		governor_gate_join(GOVERNOR_TRANSACTION, me, GOVERNOR_ROLE_ANY, 0) == GOVERNOR_JOINED)
	{
		governor_doze_wake();
		while (governor_state_of(me) != GOVERNOR_RUNNING)
		{
			if (governor_now_us() - began > NEVER_US)
				return false;
			sched_yield();
		}
	}
	governor_slot_release(me);
	return true;
}
